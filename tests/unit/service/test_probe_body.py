"""Probe requests are read strictly, results are written exactly."""

import pytest

from inferencecache.service.probe import ProbeRequest, ProbeResult, Stage, StageError
from inferencecache.service.probe_body import (
    ProbeBodyError,
    decode_probe_request,
    encode_probe_result,
)

WHOLE = b'{"backend":"b","model":"m","hashScheme":"s"}'
MISSING = "probe request missing required field (backend, model, hashScheme)"
TRAILING = "probe request body has trailing content after the first JSON value"


def test_a_whole_request_is_read() -> None:
    """The type is optional; keys may be in any case, the last of duplicates counts."""
    expected = ProbeRequest(backend="b", model="m", hash_scheme="s")
    assert decode_probe_request(WHOLE) == expected
    assert decode_probe_request(b" \n" + WHOLE.upper().replace(b'"B"', b'"b"') + b"\n\t")
    accented = decode_probe_request('{"backend":"é","model":"m","hashScheme":"s"}'.encode())
    assert accented.backend == "é"
    typed = b'{"BACKEND":"x","backend":"b","Model":"m","HASHSCHEME":"s","backendType":"LMCache"}'
    assert decode_probe_request(typed) == ProbeRequest(
        backend="b", model="m", hash_scheme="s", backend_type="LMCache"
    )


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"null",
        b'{"model":"m","hashScheme":"s"}',
        b'{"backend":"b","hashScheme":"s"}',
        b'{"backend":"b","model":"m"}',
        b'{"backend":"","model":"m","hashScheme":"s"}',
        b'{"backend":null,"model":"m","hashScheme":"s"}',
    ],
)
def test_a_missing_member_is_named(body: bytes) -> None:
    """All three are asked for in one sentence."""
    with pytest.raises(ProbeBodyError) as refused:
        decode_probe_request(body)
    assert str(refused.value) == MISSING


@pytest.mark.parametrize("rest", [b"{}", b"]", b"garbage", b"\x00", b"null", b"}"])
def test_nothing_may_follow(rest: bytes) -> None:
    """What stands behind the value is refused, whatever it is."""
    with pytest.raises(ProbeBodyError) as refused:
        decode_probe_request(WHOLE + rest)
    assert str(refused.value) == TRAILING


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "Expecting value"),
        (b"not json", "Expecting value"),
        (b"\xff", "UTF-8"),
        (b"[]", "expected an object"),
        (b"7", "expected an object"),
        (b'{"tenant":"t"}', "unknown field 'tenant'"),
        (b'{"backend":7}', "backend: expected a text"),
        (b'{"backendtype":7}', "backendType: expected a text"),
        (b'{"HASHSCHEME":[]}', "hashScheme: expected a text"),
        (b'{"backend":NaN}', "NaN"),
        (b'{"backend":"\\ud800"}', "surrogate"),
        (b"[" * 4_000, "nested"),
        (b'{"backend":' + b"1" * 4_000 + b"}", ""),
    ],
)
def test_everything_else_is_refused_with_a_reason(body: bytes, word: str) -> None:
    """The text starts the same way and says what is wrong."""
    with pytest.raises(ProbeBodyError) as refused:
        decode_probe_request(body)
    assert str(refused.value).startswith("decode probe request: ")
    assert word in str(refused.value)


def test_results_leave_out_errors_that_are_not_there() -> None:
    """The order of keys is fixed; errors appear only where there are some."""
    passed = ProbeResult(backend="b", ingest="ok", routing="ok", t2="skipped")
    assert encode_probe_result(passed) == (
        '{"backend":"b","ingest":"ok","routing":"ok","t2":"skipped"}\n'
    )
    failed = ProbeResult(
        backend="b",
        ingest="failed",
        routing="skipped",
        t2="skipped",
        errors=(StageError(Stage.INGEST, "lost"),),
    )
    assert encode_probe_result(failed).endswith('"errors":[{"stage":"ingest","message":"lost"}]}\n')
