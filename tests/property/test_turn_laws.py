"""Laws of chats that are taken apart while they are read: as if they were read once more."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st
from json_texts import SPACES, TEXTS, documents, requests
from plain_json import top_level

from inferencecache.picker.prompt.prompt_body import prompt_body_of, read_prompt_body
from inferencecache.picker.prompt.prompt_digest import PromptNames
from inferencecache.picker.request import BadBodyError, InferenceRequest, envelope, read_body
from inferencecache.picker.request.envelope import read_top_level
from inferencecache.settings.picker import PickerParseSettings

DEPTH_MAX: Final = 9
PARSE: Final = PickerParseSettings(depth_max=DEPTH_MAX)
NAMES: Final = PromptNames(b"k" * 32)

TURNS = st.one_of(
    st.sampled_from(
        [
            b'{"role":"user","content":"a"}',
            b'{"role": "user", "content": "\\"messages\\": [1]"}',
            b'{"messages":[{"a":[]}]}',
            b'"messages"',
            b'{"content":[{"type":"image","data":"' + b"A" * 300 + b'"}]}',
            b'{"a":"\\ud83d"}',
            b"[[[]]]",
            b'{"a":{"b":{"c":{"d":{}}}}}',
            b'{"content":"{{{[[["}',
            b'{"content":"\\"{[{[{[{[{[","tool_calls":[{"function":{}}]}',
        ]
    ),
    documents(),
)


@st.composite
def lists(draw: st.DrawFn) -> bytes:
    """Return lists of turns, laid out in one way or another."""
    turns = draw(st.lists(TURNS, max_size=6))
    between = [draw(SPACES) + b"," + draw(SPACES)]
    if draw(st.booleans()):
        between += [b",", b" , "]
    written = b""
    for number, turn in enumerate(turns):
        written += (draw(st.sampled_from(between)) if number else b"") + turn
    return b"[" + draw(SPACES) + written + draw(SPACES) + b"]"


@st.composite
def chats(draw: st.DrawFn) -> bytes:
    """Return bodies with turns, other members, and other values under the same name."""
    values = st.one_of(lists(), st.sampled_from([*TEXTS, b"null", b'{"messages":[{},{}]}']))
    names = [b'"messages"', b'"messages"', b'"m\\u0065ssages"', b'"metadata"']
    members = [
        draw(st.sampled_from(names)) + draw(SPACES) + b":" + draw(SPACES) + draw(values)
        for _ in range(draw(st.integers(1, 3)))
    ]
    members += [draw(requests())[1:-1].strip(), b'"model":"m"']
    members = [member for member in draw(st.permutations(members)) if member]
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + b"{" + b",".join(members) + b"}"


@contextmanager
def apart(long_bytes: int = 0) -> Iterator[None]:
    """Let bodies from so many bytes on be taken apart, however short their turns are."""
    with (
        patch.object(envelope, "_LONG_BYTES", long_bytes),
        patch.object(envelope, "_TURN_BYTES_MIN", 0),
    ):
        yield


def said(data: bytes, long_bytes: int, depth_max: int) -> InferenceRequest | str:
    """Return what a body says, or what is wrong with it."""
    with apart(long_bytes):
        try:
            return read_body(data, PickerParseSettings(depth_max=depth_max)).request
        except BadBodyError as error:
            return error.reason


@settings(max_examples=50, deadline=None)
@given(chats(), st.integers(1, DEPTH_MAX))
@example(b'{"x":{"messages":[{},{}]},"m\\u0065ssages":[{},{} ],"model":"m"}', DEPTH_MAX)
@example(b'{"messages":[{"a":1}],"messages":[{"a":1}],"model":"m"}', DEPTH_MAX)
@example(b'{"messages":[{"a":[[[]]]},{"b":"[[["}],"model":"m"}', 6)
@example(b'{"messages":[{"a":[[[]]]},{"b":"[[["}],"model":"m"}', 5)
@example(b'{"messages":[{"a":"[[["},{"b":"[[["}],"model":"m","tools":[[[[1]]]]}', 5)
@example(b'{"messages":[{"a":"[[["},{"b":"[[["}],"model":"m","tools":[[[[1]]]]}', 4)
@example(b'{"messages":[1,2],"model":"m"}', 1)
def test_a_chat_taken_apart_says_what_it_says_in_one_piece(data: bytes, depth_max: int) -> None:
    """API, models, sizes and flaws with their places."""
    assert said(data, 0, depth_max) == said(data, len(data) + 1, depth_max)


@settings(max_examples=50, deadline=None)
@given(chats())
def test_turns_are_those_of_the_last_list(data: bytes) -> None:
    """Each as it is written, and the list stands where an independent reader finds it."""
    text = data.removeprefix(b"\xef\xbb\xbf")
    named = [(start, end) for key, start, end in top_level(text) if key == "messages"]
    with apart():
        read = read_top_level(text)
    if not named:
        assert not read.turns
        return
    start, end = named[-1]
    if b"\\ud83d" not in text:  # half a pair, instead of which something else is read
        assert bytes(read.keys.messages) == text[start:end]
        whole = json.loads(text[start:end])
        assert not read.turns or [json.loads(bytes(turn)) for turn in read.turns] == whole
    assert read.place in {None, (start, end)}


@settings(max_examples=40, deadline=None)
@given(chats())
def test_a_prompt_is_the_same_wherever_its_body_was_read(data: bytes) -> None:
    """While it was parsed, or later and once more."""
    with apart():
        try:
            parsed = read_body(data, PARSE)
        except BadBodyError:
            return
        again = read_prompt_body(data)
    assert parsed.top_level is not None
    assert again is not None
    kept = prompt_body_of(parsed.top_level)
    assert kept.length == again.length
    assert NAMES.name_of(kept, b"x") == NAMES.name_of(again, b"x")
