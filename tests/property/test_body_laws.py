"""Laws of reading and rewriting bodies, against an independent reader."""

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from json_texts import documents, requests
from plain_json import NotJsonError, top_level

from inferencecache.picker.bodies import Rope, Span
from inferencecache.picker.bodies.rope import RopeBuilder
from inferencecache.picker.request import (
    BadBodyError,
    BodyFlaw,
    InferenceRequest,
    parse_body,
    rewritten,
)
from inferencecache.picker.request.structure import is_deeper_than, long_number
from inferencecache.settings.picker import PickerParseSettings

PARSE = PickerParseSettings()
MODEL_FLAWS = {
    BodyFlaw.MODEL_MISSING,
    BodyFlaw.MODEL_NOT_TEXT,
    BodyFlaw.MODEL_EMPTY,
    BodyFlaw.MODEL_TOO_OFTEN,
    BodyFlaw.MESSAGES_NOT_A_LIST,
    BodyFlaw.PROMPT_NOT_TEXT_OR_LIST,
    BodyFlaw.INPUT_NOT_TEXT_OR_LIST,
}


def read(data: bytes) -> InferenceRequest | BodyFlaw:
    """Return what *data* says, or what is wrong with it."""
    try:
        return parse_body(data, PARSE)
    except BadBodyError as error:
        return error.flaw


def model_members(data: bytes) -> list[Span]:
    """Return where the independent reader finds the top-level models."""
    return [Span(start, end) for key, start, end in top_level(data) if key == "model"]


@settings(max_examples=200, deadline=None)
@given(documents() | requests())
def test_models_are_found_where_an_independent_reader_finds_them(data: bytes) -> None:
    """Spans are exact for any spacing, any escapes, and keys that only look like it."""
    expected = model_members(data)
    request = read(data)
    if isinstance(request, BodyFlaw):
        assert request in MODEL_FLAWS
        are_null = all(data[start:end] == b"null" for start, end in expected)
        assert request is not BodyFlaw.MODEL_MISSING or are_null
        return
    assert list(request.model_spans) == expected
    assert request.model == json.loads(data)["model"]
    assert 0 <= (request.prompt_bytes or 0) <= len(data)


@settings(max_examples=100, deadline=None)
@given(
    requests(),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=20),
    st.lists(st.integers(1, 9), min_size=1),
)
def test_only_the_model_values_change(data: bytes, target: str, cuts: list[int]) -> None:
    """All other bytes are as they came, the length is exact, and every parser sees the target."""
    request = read(data)
    assume(not isinstance(request, BodyFlaw))
    content = rewritten(rope_of(data, cuts), request, target)
    changed = content.join()
    assert content.length == len(changed)
    assert b"".join(content.pieces(3)) == changed
    assert all(0 < len(piece) <= 3 for piece in content.pieces(3))
    old, new = model_members(data), model_members(changed)
    assert outside(data, old) == outside(changed, new)
    for start, end in new:
        assert json.loads(changed[start:end]) == target
    if set(request.model_names) == {target}:
        assert changed == data


@settings(max_examples=200, deadline=None)
@given(documents() | requests(), st.data())
def test_what_is_accepted_is_what_json_is(data: bytes, choices: st.DataObject) -> None:
    """A damaged document is refused exactly when an independent reader refuses it."""
    at = choices.draw(st.integers(0, len(data)))
    damage = choices.draw(
        st.sampled_from([b"", b"\x00", b"\xff", b'"', b"\\", b",", b"{", b"]", b"NaN"])
    )
    damaged = data[:at] + damage + data[at + choices.draw(st.integers(0, 2)) :]
    try:
        members = top_level(damaged)
    except (NotJsonError, UnicodeDecodeError):
        members = None
    is_refused = isinstance(flaw := read(damaged), BodyFlaw) and flaw not in MODEL_FLAWS
    assert is_refused == (members is None)


@given(st.integers(0, 30), st.integers(1, 30), st.integers(0, 60))
def test_depth_is_counted_outside_strings(depth: int, limit: int, beside: int) -> None:
    """Brackets in strings, and brackets side by side, do not nest."""
    data = b"[" + b'[],{},"[[",' * beside + b"[" * depth + b"]" * depth + b"]"
    deepest = max(2 if beside else 1, depth + 1)
    assert is_deeper_than(data, limit) == (deepest > limit)
    assert not is_deeper_than(b'["' + b"[{" * 500 + b'\\"[["]', 2)


@pytest.mark.parametrize("length", [19, 20, 21, 22, 40, 41, 42, 100])
@pytest.mark.parametrize("before", range(0, 45, 4))
def test_long_numbers_are_found_wherever_they_stand(length: int, before: int) -> None:
    """A run of more than the limit is found; one inside a string is not a number."""
    digits = b"1" * length
    number = b'{"a":"' + b"x" * before + b'","b":' + digits + b"}"
    text = b'{"a":"' + b"\\\\" * before + digits + b'\\"","b":1}'
    assert (long_number(number, 20) is not None) == (length > 20)
    assert long_number(text, 20) is None


@given(st.lists(st.binary(max_size=40_000), max_size=8), st.integers(1, 50_000))
@settings(max_examples=30, deadline=None)
def test_a_rope_keeps_every_byte(chunks: list[bytes], piece_bytes: int) -> None:
    """What was gathered is what was sent, and pieces are no larger than asked."""
    builder = RopeBuilder()
    for chunk in chunks:
        builder.append(chunk)
    assert builder.length == sum(map(len, chunks))
    rope = builder.finish()
    assert rope.join() == b"".join(chunks)
    pieces = list(rope.pieces(piece_bytes))
    assert b"".join(pieces) == b"".join(chunks)
    assert all(0 < len(piece) <= piece_bytes for piece in pieces)


def rope_of(data: bytes, cuts: list[int]) -> Rope:
    """Return *data* as a rope cut into pieces of the given sizes, over and over."""
    chunks, start, turn = [], 0, 0
    while start < len(data):
        size = cuts[turn % len(cuts)]
        chunks.append(data[start : start + size])
        start, turn = start + size, turn + 1
    return Rope(chunks)


def outside(data: bytes, spans: list[Span]) -> list[bytes]:
    """Return the bytes between *spans*."""
    starts = [0, *(end for _, end in spans)]
    ends = [*(start for start, _ in spans), len(data)]
    return [data[start:end] for start, end in zip(starts, ends, strict=True)]
