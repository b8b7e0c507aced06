"""Prompts made of a great many values: nobody builds them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from prompt_rig import question

from inferencecache.picker.prompt.blocks import NoBlocks
from inferencecache.picker.prompt.conversation import Conversation, Prompt, TextPrompt
from inferencecache.picker.prompt.many_values import VALUES_MAX, holds_many_values
from inferencecache.picker.prompt.prompt_body import read_prompt_body
from inferencecache.picker.prompt.read_prompt import read_prompt

MANY = VALUES_MAX * 5 // 2
USER = b'{"role":"user","content":"x"}'

TEXTS = st.text(alphabet='[]{},"\\\\x\\n', max_size=8)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=30,
)


def values_in(value: Any) -> int:
    """Return how many members there are, an empty list or object counted as one."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return 0
    return max(len(value), 1) + sum(map(values_in, value))


def prompt_of(body: bytes) -> Prompt | NoBlocks:
    """Return the prompt of *body*."""
    asked = question(body)
    keys = read_prompt_body(asked.content.join())
    assert keys is not None
    return read_prompt(asked.request.api, keys)


@given(st.lists(VALUES, max_size=3))
def test_values_are_counted_outside_texts(values: list[Any]) -> None:
    """The limit itself is not too many."""
    raws = [Raw(json.dumps(value).encode()) for value in values]
    count = sum(map(values_in, values))
    for values_max in range(count + 2):
        assert holds_many_values(raws, values_max) == (count > values_max)


@pytest.mark.parametrize("value", [b"{}", b'"a"', b"1"])
@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"m","messages":[%b]}',
        b'{"model":"m","messages":[{"role":"user","content":[%b]}]}',
        b'{"model":"m","messages":[{"role":"user","content":"x","a":[%b]}]}',
        b'{"model":"m","messages":[%b],"tools":[%%b]}' % USER,
        b'{"model":"m","max_tokens":1,"system":[%%b],"messages":[%b]}' % USER,
        b'{"model":"m","instructions":"x","input":[%b]}',
        b'{"model":"m","chat_template_kwargs":{"a":[%%b]},"messages":[%b]}' % USER,
    ],
)
def test_a_prompt_of_too_many_values_is_too_long(body: bytes, value: bytes) -> None:
    """They would hold the interpreter until all were built, whatever they are."""
    assert prompt_of(body % b",".join([value] * MANY)) == NoBlocks(why="prompt_too_long")


def test_a_text_full_of_brackets_is_no_such_prompt() -> None:
    """Programs are."""
    text = 'a["b"],{},' * (MANY // 4)
    turn = {"role": "user", "content": text}
    prompt = prompt_of(json.dumps({"model": "m", "messages": [turn]}).encode())
    assert isinstance(prompt, Conversation)
    (message,) = prompt.messages
    assert message.parts == (text,)


@pytest.mark.parametrize("other", [b"[]", b'"a"', b"[1,2]"])
def test_of_a_great_many_prompts_the_first_counts(other: bytes) -> None:
    """Nobody looks at the others."""
    prompt = prompt_of(b'{"model":"m","prompt":["x\\"",%b]}' % b",".join([other] * MANY))
    assert isinstance(prompt, TextPrompt)
    assert prompt.text == 'x"'
