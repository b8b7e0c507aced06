"""Conversations that begin alike have a name in common, and nothing else has."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferencecache.picker.prompt.prompt_body import PromptBody, read_prompt_body
from inferencecache.picker.prompt.prompt_digest import PromptName, PromptNames

NAMES = PromptNames(b"k" * 32)
LONG = "x" * 16_384
TURNS: list[object] = [{"role": "user", "content": f"{number}{LONG}"} for number in range(20)]
LATEST = 16


def read(data: bytes) -> PromptBody:
    """Return what a body says."""
    body = read_prompt_body(data)
    assert body is not None
    return body


def name(turns: object, context: bytes = b"", **further: object) -> PromptName:
    """Return the names of a conversation."""
    return NAMES.name_of(read(json.dumps({"messages": turns, **further}).encode()), context)


@pytest.mark.parametrize("count", range(1, 20))
def test_a_longer_conversation_has_the_names_of_the_shorter(count: int) -> None:
    """Of those with so many turns as there are, or up to 16 fewer."""
    shorter, longer = name(TURNS[:count]), name(TURNS)

    assert len(shorter.beginnings) == min(count, LATEST)
    assert (shorter.beginnings[-1] in longer.beginnings) == (count > 20 - LATEST)
    assert shorter.whole != longer.whole
    assert shorter.whole not in longer.beginnings


@pytest.mark.parametrize(
    ("opening", "between", "closing"),
    [
        ("[", [","], "]"),
        ("[", [", "], "]"),
        ("[\n  ", ["\n , \t"], " ]"),
        ("[ ", [",", ", "], "\r\n]"),
    ],
)
def test_names_go_on_however_turns_are_laid_out(
    opening: str, between: list[str], closing: str
) -> None:
    """Also where something else stands between two of them than between two others."""
    written = [json.dumps(turn) for turn in TURNS]

    def laid_out(count: int) -> PromptName:
        further = [between[at % len(between)] + turn for at, turn in enumerate(written[1:count])]
        turns = opening + written[0] + "".join(further) + closing
        return NAMES.name_of(read(f'{{"messages": {turns}, "tools": "{LONG}"}}'.encode()), b"")

    longer = laid_out(len(TURNS))
    for count in range(1, len(TURNS)):
        shorter = laid_out(count)
        assert len(shorter.beginnings) == min(count, LATEST)
        shared = [name for name in shorter.beginnings if name in longer.beginnings]
        assert shared == list(longer.beginnings[: max(count - (len(TURNS) - LATEST), 0)])


@pytest.mark.parametrize(
    "other",
    [
        name(TURNS[:5], b"c"),
        name(TURNS[:5], tools=[{"type": "function"}]),
        name(TURNS[:5], chat_template_kwargs={"a": 1}),
        name(TURNS[:5], add_generation_prompt=False),
        name(TURNS[:5], continue_final_message=True),
        name(TURNS[1:5]),
        name([{"role": "user", "content": LONG}, *TURNS[1:5]]),
        PromptNames(b"l" * 32).name_of(read(json.dumps({"messages": TURNS[:5]}).encode()), b""),
    ],
)
def test_what_changes_tokens_changes_the_names_of_all_beginnings(other: PromptName) -> None:
    """Beside the turns themselves: tools, variables, switches, the context, the process."""
    assert not set(other.beginnings) & set(name(TURNS[:5]).beginnings)


def test_short_conversations_and_other_prompts_have_no_beginnings() -> None:
    """They are read as quickly as they are looked for."""
    assert name(["a"] * 3).beginnings == ()
    assert name(LONG).beginnings == ()
    assert name(None, prompt=LONG).beginnings == ()
    assert name([], prompt=LONG).beginnings == ()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a[]{},"\\', max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)
conversations = st.lists(values, min_size=1, max_size=20)


@given(conversations, conversations)
def test_names_are_of_one_list_of_turns_only(one: list[object], other: list[object]) -> None:
    """Wherever brackets and commas stand in them."""
    first, second = name(one, tools=LONG), name(other, tools=LONG)
    written = [json.dumps(turns) for turns in (one, other)]
    shared = 0
    for turn, its in zip(one, other, strict=False):
        if json.dumps(turn) != json.dumps(its):
            break
        shared += 1

    assert (first.whole == second.whole) == (written[0] == written[1])
    found = set(first.beginnings) & set(second.beginnings)
    fewest = max(len(one), len(other)) - LATEST
    assert len(found) == max(shared - max(fewest, 0), 0)
    assert not found & {first.whole, second.whole}


def test_a_body_of_more_than_a_mebibyte_stays_in_one_piece() -> None:
    """It may have a value for every second byte."""
    body = read(b'{"messages": [' + b"1," * 600_000 + b"1]}")

    assert not body.turns
    assert NAMES.name_of(body, b"").beginnings == ()
