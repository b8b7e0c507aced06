"""Laws of the quick ways through long bodies: they find what the plain way finds."""

import json
import sys
from typing import Final
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_texts import SPACES, TEXTS, TRICKY, documents, requests
from msgspec import Raw
from plain_json import NotJsonError, top_level

from inferencecache.picker.bodies import Span
from inferencecache.picker.request import Api, BadBodyError, BodyFlaw, parse, parse_body
from inferencecache.picker.request.model_spans import model_spans, place_of
from inferencecache.picker.request.structure import is_deeper_than, nests_little
from inferencecache.settings.picker import PickerParseSettings

PARSE = PickerParseSettings()
LONG_BYTES: Final = 1_000
LONG: Final = b'"' + b"long " * 250 + b'"'
"""Long enough to be left out, here."""

VERY_LONG: Final = b'"' + b"long " * 20_000 + b'"'
"""Long enough for objects beside it to be looked at one by one."""

REFUSALS: Final = {
    BodyFlaw.MODEL_NOT_TEXT,
    BodyFlaw.MODEL_MISSING,
    BodyFlaw.MODEL_EMPTY,
    BodyFlaw.MESSAGES_NOT_A_LIST,
    BodyFlaw.PROMPT_NOT_TEXT_OR_LIST,
    BodyFlaw.INPUT_NOT_TEXT_OR_LIST,
}
"""Of objects that are valid JSON, and nothing in them too deep or too long."""


def depth_of(value: object) -> int:
    """Return how many levels of lists *value* has."""
    if not isinstance(value, list):
        return 0
    return 1 + max(map(depth_of, value), default=0)


def values_of(members: list[tuple[str, object]]) -> list[object]:
    """Return an object as a list, with the values whose key comes again."""
    return [value for _, value in members]


def flaw_of(data: bytes, depth_max: int = PARSE.depth_max) -> BodyFlaw | None:
    """Return what is wrong with *data*."""
    try:
        with patch.object(parse, "_LONG_BYTES", LONG_BYTES):
            parse_body(data, PickerParseSettings(depth_max=depth_max))
    except BadBodyError as error:
        return error.flaw
    return None


@st.composite
def long_requests(draw: st.DrawFn) -> bytes:
    """Return objects that name a model, with a long prompt before, behind or between the rest."""
    members = []
    for _ in range(draw(st.integers(1, 4))):
        request = draw(requests())[1:-1].strip()
        members.append(request)
    key = draw(st.sampled_from([b'"messages"', b'"prompt"', b'"input"']))
    items = [draw(documents()), LONG, draw(st.sampled_from(TEXTS))]
    value = b"[" + b",".join(draw(st.permutations(items))) + b"]"
    member = key + draw(SPACES) + b":" + draw(SPACES) + value
    members.insert(draw(st.integers(0, len(members))), member)
    return b"{" + b",".join(members) + draw(SPACES) + b"}"


@settings(max_examples=60, deadline=None)
@given(long_requests())
def test_models_beside_a_long_prompt_are_found(data: bytes) -> None:
    """Before it and behind it, never in it, wherever an independent reader finds them."""
    expected = [Span(start, end) for key, start, end in top_level(data) if key == "model"]
    try:
        with patch.object(parse, "_LONG_BYTES", LONG_BYTES):
            request = parse_body(data, PARSE)
    except BadBodyError as error:
        flaw, at_byte = error.flaw, error.at_byte
    else:
        assert list(request.model_spans) == expected
        assert request.model == json.loads(data)["model"]
        return
    assert flaw in REFUSALS
    if flaw is BodyFlaw.MODEL_NOT_TEXT:
        assert at_byte in {start for start, _ in expected}


@settings(max_examples=100, deadline=None)
@given(requests(), st.sampled_from(TRICKY))
def test_leaving_out_a_value_changes_no_span(data: bytes, name: bytes) -> None:
    """Whichever value it is, as long as it is not a model's."""
    key = json.loads(name)
    if key == "model":
        return
    named = [(start, end) for found, start, end in top_level(data) if found == key]
    for start, end in named:
        if data[start] not in b'[{"':
            continue
        place = place_of(data, name, Raw(data[start:end]))
        assert place is None or data[place.start : place.end] == data[start:end]
        assert outcome(data, place) == outcome(data, None)


def outcome(data: bytes, left_out: Span | None) -> list[Span] | tuple[BodyFlaw, int | None]:
    """Return the spans, or what is wrong and where."""
    try:
        return model_spans(data, None, left_out)
    except BadBodyError as error:
        return error.flaw, error.at_byte


SIBLINGS = st.lists(
    st.one_of(
        st.just(b'{"role":"a"}'),
        st.just(b'{"a":[{"b":{"c":[1]}}]}'),
        st.just(b'"},{\\"a\\":"'),
        st.just(b'"},{"'),
        st.just(b"{}"),
        st.just(b"[[]]"),
        documents(),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=100, deadline=None)
@given(SIBLINGS, st.sampled_from([b",", b", ", b",\n", b" , "]), st.integers(1, 12))
def test_what_certainly_nests_little_does(
    items: list[bytes], between: bytes, depth_max: int
) -> None:
    """Objects side by side are not counted, and nothing deeper is missed."""
    data = b'{"messages":[' + between.join([VERY_LONG, *items]) + b"]}"
    depth = depth_of(json.loads(data, object_pairs_hook=values_of))
    for is_json in (True, False):
        assert is_deeper_than(data, depth_max, is_json=is_json) == (depth > depth_max)
    if nests_little(data, depth_max):
        assert depth <= depth_max
    assert (flaw_of(data, max(depth_max, 2)) is BodyFlaw.TOO_DEEP) == (depth > max(depth_max, 2))


@settings(max_examples=100, deadline=None)
@given(SIBLINGS, st.data())
def test_what_is_broken_and_deep_is_refused_as_before(
    items: list[bytes], choices: st.DataObject
) -> None:
    """Levels are counted before anything else is looked at, even in what is no JSON."""
    whole = b'{"messages":[' + b",".join([LONG, *items]) + b"]}"
    at = choices.draw(st.integers(len(LONG), len(whole)))
    damage = choices.draw(st.sampled_from([b"", b'"', b"\\", b"},{", b"[{", b"]", b'"},{"a']))
    damaged = whole[:at] + damage + whole[at + choices.draw(st.integers(0, 2)) :]
    depth_max = choices.draw(st.integers(2, 8))
    flaw = flaw_of(damaged, depth_max)
    try:
        top_level(damaged)
    except UnicodeDecodeError:
        assert flaw is BodyFlaw.NOT_UTF8
    except NotJsonError:
        is_deep = is_deeper_than(damaged, depth_max, is_json=False)
        assert flaw is (BodyFlaw.TOO_DEEP if is_deep else BodyFlaw.MALFORMED)
    else:
        is_deep = is_deeper_than(damaged, depth_max, is_json=False)
        assert (flaw is BodyFlaw.TOO_DEEP) == is_deep


@pytest.mark.parametrize("open_close", [(b"[", b"]"), (b'{"a":', b"}")], ids=["lists", "objects"])
def test_depths_beyond_all_stacks_are_too_deep(open_close: tuple[bytes, bytes]) -> None:
    """Even behind text that makes what follows look flat, and whether or not it ends."""
    opening, closing = open_close
    deep = opening * sys.getrecursionlimit() * 4
    many = b",".join([b'{"role":"a"}'] * 100)
    for tail in (b"1" + closing * sys.getrecursionlimit() * 4 + b"]}", b""):
        data = b'{"model":"m","messages":[' + LONG + b"," + many + b"," + deep + tail
        assert flaw_of(data) is BodyFlaw.TOO_DEEP
    assert flaw_of(b'{"messages":[x' + b'},{"a":' * 5_000 + LONG) is BodyFlaw.MALFORMED


@pytest.mark.parametrize(
    ("messages", "api"),
    [
        (b'[{"content":"\\"tool_use\\""}]', Api.CHAT_COMPLETIONS),
        (b'[{"content":[{"type":"tool_use"}]}]', Api.ANTHROPIC_MESSAGES),
        (b'[{"content":[{"type" : "tool_use"}]}]', Api.ANTHROPIC_MESSAGES),
        (b'[{"name":"tool_use","content":"x"}]', Api.CHAT_COMPLETIONS),
        (b'[{"content":[{"data":"x","type":"tool_use"}]}]', Api.ANTHROPIC_MESSAGES),
    ],
)
def test_words_tell_an_api_wherever_they_stand(messages: bytes, api: Api) -> None:
    """Short or long, and whatever other word stands there."""
    for body in (messages, messages[:-1] + b',{"content":' + LONG + b"}]"):
        assert parse_body(b'{"model":"m","messages":' + body + b"}", PARSE).api is api


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.sampled_from('\\"[]{}/bfnrtu\n\x01x')), max_size=8), st.integers(1, 4))
def test_escapes_hide_no_bracket_and_show_none(texts: list[str], depth: int) -> None:
    """Whatever stands in strings, quotes and backslashes in any order, changes no level."""
    data = b"[" * depth + json.dumps(texts).encode() + b"]" * depth
    levels = 1 + depth
    for is_json in (True, False):
        assert not is_deeper_than(data, levels, is_json=is_json)
        assert is_deeper_than(data, levels - 1, is_json=is_json)
