"""Bodies that broke routers in practice: each is routed, or refused with a reason."""

from pathlib import Path

import pytest

from inferencecache.picker.bodies import Rope
from inferencecache.picker.request import Api, BadBodyError, BodyFlaw, parse_body, rewritten
from inferencecache.settings.picker import PickerParseSettings

BODIES = Path(__file__).parents[1] / "data" / "field" / "bodies"
PARSE = PickerParseSettings()

ROUTED = {
    "all_parts_content": Api.CHAT_COMPLETIONS,
    "anthropic_messages": Api.ANTHROPIC_MESSAGES,
    "bom": Api.COMPLETIONS,
    "image_part_a": Api.CHAT_COMPLETIONS,
    "image_part_b": Api.CHAT_COMPLETIONS,
    "model_trailing_space": Api.COMPLETIONS,
    "prompt_list_of_lists": Api.COMPLETIONS,
    "prompt_list_of_strings": Api.COMPLETIONS,
    "prompt_token_ids": Api.COMPLETIONS,
    "responses_input": Api.RESPONSES,
    "tool_result_parts": Api.CHAT_COMPLETIONS,
}
REFUSED = {
    "empty": BodyFlaw.EMPTY,
    "int_4301_digits": BodyFlaw.NUMBER_TOO_LONG,
    "model_empty": BodyFlaw.MODEL_EMPTY,
    "model_missing": BodyFlaw.MODEL_MISSING,
    "model_not_string": BodyFlaw.MODEL_NOT_TEXT,
    "model_null": BodyFlaw.MODEL_MISSING,
    "nan_and_inf": BodyFlaw.MALFORMED,
    "nest_20000": BodyFlaw.TOO_DEEP,
    "top_level_array": BodyFlaw.NOT_AN_OBJECT,
    "truncated": BodyFlaw.MALFORMED,
    "two_docs": BodyFlaw.MALFORMED,
    "utf16": BodyFlaw.MALFORMED,
}


def body(name: str) -> bytes:
    """Return a body by name."""
    return (BODIES / f"{name}.json").read_bytes()


@pytest.mark.parametrize("name", sorted(ROUTED))
def test_real_bodies_are_routed_and_rewritten(name: str) -> None:
    """F49, F52: whatever API it is meant for, the model is found and nothing else changes."""
    data = body(name)
    request = parse_body(data, PARSE)
    assert request.api is ROUTED[name]
    changed = rewritten(Rope([data]), request, "another/model").join()
    assert changed == data.replace(b'"' + request.model.encode() + b'"', b'"another/model"', 1)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_hostile_bodies_are_refused_with_a_reason(name: str) -> None:
    """F47: the reason names the flaw and quotes nothing of the body."""
    with pytest.raises(BadBodyError) as caught:
        parse_body(body(name), PARSE)
    assert caught.value.flaw is REFUSED[name]
    assert caught.value.reason.startswith(f"body={REFUSED[name].value}")


def test_every_file_is_covered() -> None:
    """A file that is added gets an expectation, too."""
    files = {path.stem for path in BODIES.glob("*.json")} - {"manifest"}
    assert files == ROUTED.keys() | REFUSED.keys()
    assert not ROUTED.keys() & REFUSED.keys()


def test_a_trailing_blank_stays() -> None:
    """The name is the client's; nobody corrects it."""
    assert parse_body(body("model_trailing_space"), PARSE).model.endswith(" ")


def test_a_mark_in_front_stays() -> None:
    """A byte order mark is skipped for reading and kept in the body."""
    data = body("bom")
    request = parse_body(data, PARSE)
    assert rewritten(Rope([data]), request, "m").join().startswith(b"\xef\xbb\xbf{")
