"""Chats taken apart turn by turn, whatever their turns are."""

import tracemalloc
from functools import partial

import pytest
from processor_time import least_s

from inferencecache.picker.request import BadBodyError, BodyFlaw, ParsedBody, read_body
from inferencecache.picker.request.envelope import read_top_level
from inferencecache.settings.picker import PickerParseSettings

PARSE = PickerParseSettings()
BODY_BYTES = 900_000
CODE = b'{"role":"user","content":"%b"}' % (b"{" * 200)


def chat(turn: bytes, bytes_max: int = BODY_BYTES) -> bytes:
    """Return a body full of the same turn."""
    count = bytes_max // (len(turn) + 1)
    return b'{"model":"m","messages":[%b]}' % b",".join([turn] * count)


def read(data: bytes) -> ParsedBody:
    """Return what is read of a body before it is chosen for."""
    return read_body(data, PARSE)


@pytest.mark.parametrize("turn", [b"1", b"[]", b'""', b'{"role":"user","content":"hello"}', CODE])
def test_what_is_read_of_a_body_takes_no_more_than_the_body(turn: bytes) -> None:
    """It is kept as long as the Pick takes, and only the bytes of bodies are counted."""
    data = chat(turn)
    read(chat(turn, 20_000))  # what is made once
    tracemalloc.start()
    try:
        kept = read(data)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept.request.model == "m"
    assert taken <= len(data)


@pytest.mark.parametrize(("turn_bytes", "is_apart"), [(200, True), (64, True), (20, False)])
def test_turns_that_could_be_those_of_a_conversation_are_taken_apart(
    turn_bytes: int, *, is_apart: bool
) -> None:
    """Those that are shorter stay in one piece."""
    data = chat(b'"%b"' % (b"a" * (turn_bytes - 2)))

    assert bool(read_top_level(data).turns) is is_apart


def test_many_turns_full_of_brackets_are_looked_at_together() -> None:
    """Each could nest too deep by their number alone."""
    many = chat(CODE)
    one = chat(b'{"role":"user","content":"%b"}' % (b"{" * (BODY_BYTES - 100)))

    assert read(one).request.model == read(many).request.model == "m"
    assert least_s(lambda: partial(read, many)) < 3.5 * least_s(lambda: partial(read, one))


@pytest.mark.parametrize("too_deep", [0, 1, -1])
def test_one_turn_that_nests_too_deep_is_found_among_others_with_brackets(too_deep: int) -> None:
    """The body and its list are two levels."""
    levels = PARSE.depth_max - 2
    turns = [CODE] * 100
    turns[too_deep] = b"[" * levels + b"]" * levels
    body = b'{"model":"m","messages":[%b]}'

    assert read(body % b",".join(turns)).request.model == "m"
    turns[too_deep] = b"[" + turns[too_deep] + b"]"
    with pytest.raises(BadBodyError) as refused:
        read(body % b",".join(turns))
    assert refused.value.flaw is BodyFlaw.TOO_DEEP
