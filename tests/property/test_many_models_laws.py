"""Laws of finding models among many keys of that name, at whatever places a body is cut."""

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st
from json_texts import documents, requests
from plain_json import top_level

from inferencecache.picker.bodies import Span
from inferencecache.picker.request import (
    BadBodyError,
    BodyFlaw,
    InferenceRequest,
    LaboriousBodyError,
    parse_body,
    top_keys,
)
from inferencecache.picker.request.model_spans import model_spans
from inferencecache.settings.picker import PickerParseSettings

PARSE = PickerParseSettings()
ANY_NUMBER = 1_000_000
SPANS_MAX = 16
DECOYS = [
    b'{"model":1}',
    b'{"model":{"model":["model"]}}',
    b'["model","model", "model" ]',
    b'{"\\u006dodel":"a,b"}',
    b'{"mod\\"el":1}',
    b'{"\\\\model":"\\\\"}',
    b'{"\\\\u006dodel":"\\""}',
    b'{",model":",\\"model\\":1,"}',
    b'{"a":"model","b":"]},{[\\",\\"model\\":"}',
]
"""Values that hold keys of the name, and texts that look like some."""

BLOCK_BYTES = st.sampled_from([1, 7, 16, 40, 200, 65_536])


@st.composite
def crowded(draw: st.DrawFn) -> bytes:
    """Return objects with models among many keys of the name, at all levels."""
    members = [draw(requests() | documents())[1:-1].strip() for _ in range(draw(st.integers(1, 3)))]
    keys = st.sampled_from([b'"a":', b'"tools" :\n', b'"model": '])
    decoys = draw(st.lists(st.tuples(keys, st.sampled_from(DECOYS)), min_size=1, max_size=6))
    members += [key + value for key, value in decoys]
    members += [b'"model":"m,n"'] * draw(st.sampled_from([1, 2, 9, SPANS_MAX + 5]))
    return b"{" + b" ,\n".join(filter(None, draw(st.permutations(members)))) + b"}"


def expected_in(data: bytes) -> list[Span] | tuple[BodyFlaw, int | None]:
    """Return where an independent reader finds the models, or the first flaw among them."""
    spans: list[Span] = []
    for _, start, end in filter(lambda member: member.key == "model", top_level(data)):
        if data[start] != ord('"') and data[start:end] != b"null":
            return BodyFlaw.MODEL_NOT_TEXT, start
        spans.append(Span(start, end))
        if len(spans) > SPANS_MAX:
            return BodyFlaw.MODEL_TOO_OFTEN, None
    return spans


def found_in(data: bytes, keys_max: int | None) -> list[Span] | tuple[BodyFlaw, int | None]:
    """Return where the models are found, or the first flaw; of too many only that they are."""
    try:
        return model_spans(data, keys_max)
    except BadBodyError as error:
        is_place = error.flaw is BodyFlaw.MODEL_NOT_TEXT
        return error.flaw, error.at_byte if is_place else None


def said_by(data: bytes, keys_max: int | None) -> InferenceRequest | str | None:
    """Return what a body says or what is wrong with it; None if that would take too long."""
    try:
        return parse_body(data, PARSE, keys_max)
    except BadBodyError as error:
        return error.reason
    except LaboriousBodyError:
        return None


@settings(max_examples=150, deadline=None)
@given(crowded(), BLOCK_BYTES)
def test_models_are_found_wherever_a_body_is_cut(data: bytes, block_bytes: int) -> None:
    """They are those an independent reader finds, among keys, texts and values that look so."""
    expected = expected_in(data)
    with patch.object(top_keys, "_BLOCK_BYTES", block_bytes):
        assert found_in(data, None) == expected
    assert found_in(data, ANY_NUMBER) == expected


@settings(max_examples=100, deadline=None)
@given(crowded(), BLOCK_BYTES, st.integers(0, 12))
def test_how_many_keys_may_be_looked_at_changes_no_answer(
    data: bytes, block_bytes: int, keys_max: int
) -> None:
    """A reader that may look at few says the same to the byte, or nothing."""
    with patch.object(top_keys, "_BLOCK_BYTES", block_bytes):
        whole = said_by(data, None)
    assert said_by(data, ANY_NUMBER) == whole
    assert said_by(data, keys_max) in (whole, None)
