"""Trace lines: what is read, and what is refused with line, field and value."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferencecache.errors import ConfigError
from inferencecache.simulation import TraceRequest, parse_request, parse_trace

GOOD = {"timestamp": 3000, "input_length": 1100, "output_length": 52, "hash_ids": [0, 7, 9]}


def line(**changes: object) -> bytes:
    """Return a good line with some fields changed; None removes one."""
    fields = {key: value for key, value in (GOOD | changes).items() if value is not None}
    return json.dumps(fields).encode()


def test_reads_every_field() -> None:
    """A line of the documented form becomes a request with the same numbers."""
    request = parse_request(line(), "t line 1")

    assert request == TraceRequest(
        timestamp_ms=3000, input_length=1100, output_length=52, hash_ids=(0, 7, 9)
    )


def test_ignores_further_fields_and_blank_lines() -> None:
    """Fields of later trace versions and empty lines do no harm."""
    requests = list(parse_trace([line(kind="chat"), b"\n", line()], "t"))

    assert len(requests) == 2


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (line(timestamp=None), ["timestamp", "None"]),
        (line(timestamp=-1), ["timestamp", "-1"]),
        (line(timestamp=1.5), ["timestamp", "1.5"]),
        (line(timestamp="0"), ["timestamp", "'0'"]),
        (line(input_length=0), ["input_length", "0", "from 1"]),
        (line(input_length=True), ["input_length", "True"]),
        (line(input_length=2**31), ["input_length", "2147483648"]),
        (line(output_length=-5), ["output_length", "-5"]),
        (line(hash_ids=None), ["hash_ids", "a list"]),
        (line(hash_ids={"0": 1}), ["hash_ids", "a list"]),
        (line(hash_ids=[0, -7, 9]), ["hash_ids[1]", "-7"]),
        (line(hash_ids=[0, 7, 2**32]), ["hash_ids[2]", "4294967296"]),
        (line(hash_ids=[0, 7]), ["number of hash_ids", "2", "3, one per"]),
        (line(input_length=1025, hash_ids=[1, 2, 3, 4]), ["number of hash_ids", "4"]),
        (b"[1, 2]", ["line", "one JSON object"]),
        (b"{", ["line", "one JSON object"]),
        (b'{"timestamp": "\xff"}', ["line", "one JSON object"]),
        (b"[" * 100_000, ["line", "one JSON object"]),
    ],
)
def test_refuses_a_wrong_line(bad: bytes, words: list[str]) -> None:
    """A wrong line is refused with its number, the field, the value and what would do."""
    with pytest.raises(ConfigError) as caught:
        list(parse_trace([line(timestamp=0), b"", bad], "trace.jsonl"))

    message = str(caught.value)
    assert caught.value.source == "trace.jsonl line 3"
    assert all(word in message for word in words), message
    assert len(message) < 400


def test_refuses_time_that_goes_back() -> None:
    """Requests come in order of arrival."""
    with pytest.raises(ConfigError, match=r"timestamp: 2999 .*line 2.*at least 3000"):
        list(parse_trace([line(), line(timestamp=2999)], "t"))


@given(data=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_give_a_request_or_one_kind_of_error(data: bytes) -> None:
    """Whatever stands in a line, nothing but a request or a ConfigError comes out."""
    with contextlib.suppress(ConfigError):
        parse_request(data, "t line 1")
