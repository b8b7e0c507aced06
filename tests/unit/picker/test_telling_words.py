"""Words that tell what a chat is are found wherever they stand, and however it is looked at."""

import json
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from inferencecache.picker.request.telling_words import DATA_KEY, TOOL_USE, has_telling_words

LONG: Final = "x" * 6_000
TEXTS = st.sampled_from(
    [
        LONG,
        f'say "data" {LONG}',
        f'"{LONG}',
        f"{LONG}\\",
        f'{LONG}"tool_use"',
        "data",
        "tool_use",
        "",
        '"data',
        "a" * 8,
    ]
)
TURNS = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "data"]), "content": TEXTS}),
    st.dictionaries(TEXTS, TEXTS, max_size=2),
    st.fixed_dictionaries({"content": TEXTS, "n": st.sampled_from([1, [], {"data": 1}])}),
    st.lists(TEXTS, max_size=3),
    TEXTS,
    st.none(),
)
LAYOUTS = st.sampled_from([(",", ":"), (", ", ": ")])


def looked_for(turns: list[object], layout: tuple[str, str]) -> tuple[bool, bool]:
    """Return whether *turns* have such words, and what is found of them turn by turn."""
    written = [json.dumps(turn, separators=layout).encode() for turn in turns]
    messages = b"[" + layout[0].encode().join(written) + b"]"
    found = has_telling_words(Raw(messages), [Raw(turn) for turn in written])
    return TOOL_USE in messages or DATA_KEY in messages, found


@given(st.lists(TURNS, max_size=9), LAYOUTS)
@example([{"role": "user", "content": LONG}, {"role": "user", "content": "data"}], (",", ":"))
@example([{"role": "user", "content": LONG}] * 3 + [{"role": "user", "": "tool_use"}], (",", ":"))
@example([LONG, LONG, "data"], (",", ":"))
@example([f'"{LONG}'] * 4 + ["data"], (",", ":"))
@example([f'"{LONG}'] * 5 + [{"data": LONG}], (", ", ": "))
def test_words_are_found_turn_by_turn(turns: list[object], layout: tuple[str, str]) -> None:
    """As in all of them together."""
    is_there, found = looked_for(turns, layout)
    assert found is is_there


@pytest.mark.parametrize("length", range(24))
@pytest.mark.parametrize("word", ["tool_use", "data"])
def test_a_last_text_that_is_such_a_word_is_found(word: str, length: int) -> None:
    """Behind a turn that begins the same, and with any number of blanks behind it."""
    turns = [f'{{"type":"{LONG}"}}', f'{{"type":"{word}"{" " * length}}}']
    written = [Raw(turn.encode()) for turn in turns]
    assert has_telling_words(Raw(f"[{','.join(turns)}]".encode()), written)
