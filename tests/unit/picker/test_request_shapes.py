"""Which API a body is meant for, and what else is read of it."""

import json

import pytest

from inferencecache.picker.request import (
    Api,
    BadBodyError,
    BodyFlaw,
    InferenceRequest,
    LaboriousBodyError,
    parse_body,
)
from inferencecache.picker.request.whole_number import BEYOND_ALL_LIMITS
from inferencecache.settings.picker import PickerParseSettings

PARSE = PickerParseSettings()
TEXT = [{"role": "user", "content": "hi"}]
CALL = {"type": "function", "function": {"name": "tool_use", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("fields", "api"),
    [
        ({"messages": TEXT}, Api.CHAT_COMPLETIONS),
        ({"messages": [], "input": "x"}, Api.CHAT_COMPLETIONS),
        ({"messages": TEXT, "system": "s"}, Api.ANTHROPIC_MESSAGES),
        ({"messages": TEXT, "stop_sequences": []}, Api.ANTHROPIC_MESSAGES),
        ({"messages": TEXT, "anthropic_version": "v", "max_tokens": 1}, Api.ANTHROPIC_MESSAGES),
        ({"messages": [{"content": [{"type": "tool_use"}]}]}, Api.ANTHROPIC_MESSAGES),
        ({"messages": [{"content": "tool_use"}]}, Api.CHAT_COMPLETIONS),
        ({"messages": [{"content": '{"type": "tool_use"}'}]}, Api.CHAT_COMPLETIONS),
        ({"messages": [{"tool_calls": [CALL]}]}, Api.CHAT_COMPLETIONS),
        ({"prompt": "x"}, Api.COMPLETIONS),
        ({"prompt": ["x", "y"]}, Api.COMPLETIONS),
        ({"prompt": [1, 2]}, Api.COMPLETIONS),
        ({"prompt": [[1], [2]]}, Api.COMPLETIONS),
        ({"input": "x", "instructions": "y"}, Api.RESPONSES),
        ({"input": "x", "store": False}, Api.RESPONSES),
        ({"input": [{"role": "user"}]}, Api.RESPONSES),
        ({"input": "x", "encoding_format": "float"}, Api.EMBEDDINGS),
        ({"input": ["x"]}, Api.EMBEDDINGS),
        ({"input": [1, 2]}, Api.EMBEDDINGS),
        ({"input": [[1], [2]]}, Api.EMBEDDINGS),
        ({"input": "x"}, Api.AMBIGUOUS_INPUT),
        ({"query": "q", "documents": ["d"]}, Api.RERANK),
        ({"text_1": "a", "text_2": "b"}, Api.SCORE),
        ({"prompt": None, "input": "x"}, Api.AMBIGUOUS_INPUT),
        ({"messages": None, "prompt": "x"}, Api.COMPLETIONS),
        ({"something": "else"}, Api.UNKNOWN),
        ({}, Api.UNKNOWN),
    ],
    ids=str,
)
def test_the_shape_tells_the_api(fields: dict[str, object], api: Api) -> None:
    """The keys at the top level decide; null is as good as absent."""
    assert parse(fields).api is api


@pytest.mark.parametrize("layout", ["", " ", "\n" + "\t" * 100, " " * 10_000])
@pytest.mark.parametrize(
    ("body", "api"),
    [
        ('{"model": "m", "input": [%s{"role": "user"}]}', Api.RESPONSES),
        ('{"model": "m", "input": [%s"x"]}', Api.EMBEDDINGS),
        ('{"model": "m", "input": [%s[1]]}', Api.EMBEDDINGS),
        ('{"model": "m", "input": [%s]}', Api.AMBIGUOUS_INPUT),
        ('{"model": "m", "messages": [{"type":%s"tool_use"}]}', Api.ANTHROPIC_MESSAGES),
    ],
)
def test_layout_tells_nothing(body: str, api: Api, layout: str) -> None:
    """Bodies that were printed for people are what they were."""
    assert parse_body((body % layout).encode(), PARSE).api is api


@pytest.mark.parametrize(
    ("fields", "flaw"),
    [
        ({"messages": "x"}, BodyFlaw.MESSAGES_NOT_A_LIST),
        ({"messages": {}}, BodyFlaw.MESSAGES_NOT_A_LIST),
        ({"messages": None}, BodyFlaw.MESSAGES_NOT_A_LIST),
        ({"prompt": 5}, BodyFlaw.PROMPT_NOT_TEXT_OR_LIST),
        ({"prompt": {}}, BodyFlaw.PROMPT_NOT_TEXT_OR_LIST),
        ({"input": True}, BodyFlaw.INPUT_NOT_TEXT_OR_LIST),
    ],
    ids=str,
)
def test_a_deciding_key_of_another_type_is_refused(
    fields: dict[str, object], flaw: BodyFlaw
) -> None:
    """The engine would refuse it anyway, after it had a place there."""
    with pytest.raises(BadBodyError) as caught:
        parse(fields)
    assert caught.value.flaw is flaw


def test_unknown_shapes_can_be_refused() -> None:
    """Where an operator wants only what is known."""
    strict = PickerParseSettings(allow_unknown_shape=False)
    with pytest.raises(BadBodyError) as caught:
        parse_body(b'{"model":"m"}', strict)
    assert caught.value.flaw is BodyFlaw.UNKNOWN_SHAPE


def test_what_routing_uses_is_read() -> None:
    """Limits, streaming and texts that tie requests together."""
    request = parse(
        {
            "prompt": "x",
            "stream": True,
            "max_tokens": 7,
            "max_completion_tokens": 5,
            "user": "u",
            "conversation": {"id": "c"},
            "cache_salt": "s",
            "session_id": 5,
            "safety_identifier": "x" * 5_000,
        }
    )
    assert request.is_stream
    assert request.output_tokens_max == 7
    assert request.affinity.user == "u"
    assert request.affinity.conversation == "c"
    assert request.affinity.cache_salt == "s"
    assert request.affinity.session_id == ""
    assert request.affinity.safety_identifier == ""
    assert parse({"conversation": "plain"}).affinity.conversation == "plain"
    assert not parse({"stream": "yes", "max_tokens": "many"}).is_stream


@pytest.mark.parametrize(
    ("written", "limit"),
    [
        ("51", 51),
        ("51.0", 51),
        ("5.1e1", 51),
        ("50.5", 51),
        ('"51"', 51),
        ('" 5_1.0 "', 51),
        ("1e999", BEYOND_ALL_LIMITS),
        ('"1e999"', BEYOND_ALL_LIMITS),
        ("1" * 40, BEYOND_ALL_LIMITS),
        ('"' + "1" * 2_000 + '"', BEYOND_ALL_LIMITS),
        ("0", None),
        ("-5", None),
        ("-1e999", None),
        ("null", None),
        ('"many"', None),
        ('"nan"', None),
        ("[51]", None),
    ],
    ids=lambda value: str(value)[:9],
)
@pytest.mark.parametrize("key", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_a_limit_is_the_same_however_it_is_written(
    key: str, written: str, limit: int | None
) -> None:
    """Engines take a number for what it is, so a rule about it cannot be got around."""
    body = f'{{"model":"m","prompt":"x","{key}":{written}}}'
    assert parse_body(body.encode(), PARSE).output_tokens_max == limit


@pytest.mark.parametrize(
    "model", [b'"a\\ud83d"', b'"' + b"x" * 4_097 + b'"', b"null", b"[]", b'""'], ids=len
)
def test_models_that_are_no_names_are_refused(model: bytes) -> None:
    """A name is a text of some length, and not of any length."""
    with pytest.raises(BadBodyError):
        parse_body(b'{"model":' + model + b"}", PARSE)


def test_too_many_models_are_refused() -> None:
    """Seventeen keys at the top are no mistake; below the top there may be any number."""
    with pytest.raises(BadBodyError) as caught:
        parse_body(b"{" + b",".join([b'"model":"m"'] * 17) + b"}", PARSE)
    assert caught.value.flaw is BodyFlaw.MODEL_TOO_OFTEN
    nested = b'{"model":"m","tools":[' + b",".join([b'{"model":1}'] * 500) + b"]}"
    assert parse_body(nested, PARSE).model == "m"


@pytest.mark.parametrize("key", [b'"model"', b'"\\u006dodel"'])
def test_much_work_is_noticed_before_it_is_done(key: bytes) -> None:
    """A body with a key that has to be looked at very often is for somebody with more time."""
    body = b'{"model":"m","tools":[' + b",".join([b"{" + key + b":1}"] * 20) + b"]}"
    assert parse_body(body, PARSE, keys_max=21).model == "m"
    with pytest.raises(LaboriousBodyError):
        parse_body(body, PARSE, keys_max=20)


def parse(fields: dict[str, object]) -> InferenceRequest:
    """Return the request that *fields* make with a model."""
    return parse_body(json.dumps({"model": "m", **fields}).encode(), PARSE)
