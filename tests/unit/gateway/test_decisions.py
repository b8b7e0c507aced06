"""Statuses, errors, retries, URLs, headers and gaps: small decisions, each with its table."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferencecache.gateway import (
    GAP_LAYOUT,
    NO_ROUTE,
    PICKER_DOWN,
    TOO_LARGE,
    ErrorForm,
    Failure,
    Gaps,
    KeptBody,
    ReplayRoom,
    answer_headers,
    error_page,
    may_retry,
    printable,
    qos_name,
    refusal_of_call,
    refusal_of_pick,
    request_headers,
    target_url,
)


@pytest.mark.parametrize(
    ("outcome", "reason", "status", "code", "later"),
    [
        ("BAD_REQUEST", "body=malformed;at=3", 400, "invalid_request", False),
        ("NO_WORKERS", "model=unknown", 404, "model_not_found", False),
        ("NO_WORKERS", "context=exceeds", 400, "context_length_exceeded", False),
        ("NO_WORKERS", "api=unsupported", 400, "unsupported_api", False),
        ("NO_WORKERS", "pool=unknown", 503, "no_destination", True),
        ("NO_WORKERS", "candidates=suppressed", 503, "no_destination", True),
        ("POLICY_REJECTED", "policy=a/p;rule=default", 403, "policy_rejected", False),
        ("POLICY_REJECTED", "policy=a/p;rule=1;limit=in_flight", 429, "rate_limit_exceeded", True),
        (
            "POLICY_REJECTED",
            "policy=a/p;rule=1;limit=requests_per_minute",
            429,
            "rate_limit_exceeded",
            True,
        ),
        ("POLICY_REJECTED", "shed=deferrable", 429, "rate_limit_exceeded", True),
        ("POLICY_REJECTED", "policy=a/p;rule=1;limit=output_tokens", 403, "policy_rejected", False),
        ("POLICY_REJECTED", "denied_by=p;denial=limit", 403, "policy_rejected", False),
    ],
)
def test_outcomes_become_statuses(
    outcome: str, reason: str, status: int, code: str, later: object
) -> None:
    """What passes may be tried again, what the request itself breaks is not worth it."""
    refusal = refusal_of_pick(outcome, reason)
    assert (refusal.status, refusal.code, refusal.may_retry_later) == (status, code, later)
    assert reason in refusal.message


@pytest.mark.parametrize(
    ("method", "status", "detail", "expected"),
    [
        ("PushBody", "INVALID_ARGUMENT", "", 400),
        ("PushBody", "DEADLINE_EXCEEDED", "", 408),
        ("PushBody", "RESOURCE_EXHAUSTED", "declared bytes of a body: more than 8", 413),
        ("PushBody", "RESOURCE_EXHAUSTED", "bodies at a time: more than 8", 503),
        ("PushBody", "RESOURCE_EXHAUSTED", "bytes of all bodies: more than 8", 503),
        ("PushBody", "UNAVAILABLE", "", 503),
        ("PushBody", "PERMISSION_DENIED", "", 403),
        ("Pick", "PERMISSION_DENIED", "", 403),
        ("Pick", "INVALID_ARGUMENT", "", 400),
        ("Pick", "RESOURCE_EXHAUSTED", "", 431),
        ("Pick", "UNAVAILABLE", "", 503),
        ("Pick", "DEADLINE_EXCEEDED", "", 503),
    ],
)
def test_failed_calls_become_statuses(method: str, status: str, detail: str, expected: int) -> None:
    """What is wrong with an upload is the client's, all else is ours."""
    assert refusal_of_call(method, status, detail).status == expected


def test_errors_are_written_as_clients_read_them() -> None:
    """One form for each API."""
    page = json.loads(error_page(NO_ROUTE, ErrorForm.OPENAI))
    assert page == {
        "error": {
            "type": "not_found_error",
            "message": NO_ROUTE.message,
            "param": None,
            "code": "unknown_url",
        }
    }
    page = json.loads(error_page(PICKER_DOWN, ErrorForm.ANTHROPIC))
    assert page == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": PICKER_DOWN.message},
    }
    assert json.loads(error_page(TOO_LARGE, ErrorForm.OPENAI))["error"]["type"] == (
        "invalid_request_error"
    )


@pytest.mark.parametrize("failure", Failure)
def test_what_is_worth_another_attempt(failure: Failure) -> None:
    """Not what took long, is no answer or has begun, and nothing without the body or the right."""
    expected = failure not in {Failure.SLOW, Failure.ODD_ANSWER, Failure.CUT}
    assert may_retry(failure, 1, is_replayable=True) is expected
    assert not may_retry(failure, 0, is_replayable=True)
    assert not may_retry(failure, 1, is_replayable=False)


@pytest.mark.parametrize(
    ("base", "path", "expected"),
    [
        ("http://a:1", "", "http://a:1/v1/x?q=%2F"),
        ("http://a:1/", "", "http://a:1/v1/x?q=%2F"),
        ("http://a/p/", "/serve", "http://a/p/serve"),
        ("http://a/p", "/serve?v=1", "http://a/p/serve?v=1"),
    ],
)
def test_urls_are_joined(base: str, path: str, expected: str) -> None:
    """A path takes the place of path and query, behind the prefix."""
    assert target_url(base, path, "/v1/x", "q=%2F") == expected


def test_headers_that_stay() -> None:
    """Of the connection, what it names, credentials, the gateway's own, and broken ones."""
    headers = [
        ("Connection", "keep-alive, X-Hop"),
        ("X-Hop", "1"),
        ("TE", "trailers"),
        ("Authorization", "Bearer client"),
        ("X-Api-Key", "client"),
        ("Cookie", "a=b"),
        ("Host", "gateway"),
        ("Content-Length", "3"),
        ("X-Tenant-Id", "acme"),
        ("Content-Type", "application/json"),
        ("X-Twice", "1"),
        ("X-Twice", "2"),
        ("X-Broken", "a\udc80"),
    ]
    sent = [*request_headers(headers, ["x-tenant-id"])]
    assert sent == [("Content-Type", "application/json"), ("X-Twice", "1"), ("X-Twice", "2")]
    answered = [
        *answer_headers(
            [
                ("Content-Length", "3"),
                ("Transfer-Encoding", "chunked"),
                ("Set-Cookie", "a=b"),
                ("Location", "http://10.0.0.1"),
                ("X-Broken", "a\nb"),
                ("Content-Type", "text/event-stream"),
            ]
        )
    ]
    assert answered == [("Content-Length", "3"), ("Content-Type", "text/event-stream")]


@pytest.mark.parametrize(
    ("gap_ms", "bucket"),
    [
        (0, 0),
        (5, 0),
        (5.001, 1),
        (10, 1),
        (15, 2),
        (20, 3),
        (30, 4),
        (40, 5),
        (50, 6),
        (75, 7),
        (100, 8),
        (150, 9),
        (200, 10),
        (300, 11),
        (500, 12),
        (1_000, 13),
        (1_000.001, 14),
        (1e9, 14),
    ],
)
def test_gaps_fall_into_the_buckets_of_layout_1(gap_ms: float, bucket: int) -> None:
    """Upper edges belong to their buckets."""
    gaps = Gaps()
    gaps.arrived(7)
    gaps.arrived(7 + round(gap_ms * 1_000_000))
    assert GAP_LAYOUT == 1
    assert gaps.counts == tuple(int(place == bucket) for place in range(15))


def test_one_arrival_has_no_gap_and_an_interruption_leaves_one_out() -> None:
    """The time that a client takes is none of the engine's."""
    gaps = Gaps()
    gaps.arrived(0)
    assert gaps.counts == ()
    gaps.interrupted()
    gaps.arrived(10**12)
    assert gaps.counts == ()
    gaps.arrived(10**12)
    assert sum(gaps.counts) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [("batch", "BATCH"), (" Deferrable ", "DEFERRABLE"), ("", "INTERACTIVE"), ("x", "INTERACTIVE")],
)
def test_qos_classes_are_read(text: str, expected: str) -> None:
    """In any case; what nobody knows is interactive."""
    assert qos_name(text) == expected


@given(st.text(st.characters(), max_size=80))
def test_any_text_can_go_into_a_header(text: str) -> None:
    """As printable ASCII without white space around it."""
    made = printable(text, 64)
    assert made.isascii()
    assert made.isprintable()
    assert made == made.strip()


@given(
    sizes=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=60),
    ended=st.sets(st.integers(0, 3)),
)
def test_room_is_given_back(sizes: list[tuple[int, int]], ended: set[int]) -> None:
    """What bodies keep adds up, stays within both limits, and is whole or nothing."""
    room = ReplayRoom(body_bytes_max=100, total_bytes_max=150)
    bodies = [KeptBody(room) for _ in range(4)]
    sent = [b""] * 4
    for place, size in sizes:
        sent[place] += b"x" * size
        bodies[place].keep(b"x" * size)
        kept = [b"".join(body) for body in bodies]
        assert room.taken_bytes == sum(map(len, kept)) <= 150
        for body, content, whole in zip(bodies, kept, sent, strict=True):
            assert content == (whole if body.is_whole else b"")
            assert len(content) <= 100
    for place in ended:
        bodies[place].let_go()
    assert room.taken_bytes == sum(len(b"".join(body)) for body in bodies)
    for body in bodies:
        body.let_go()
    assert room.taken_bytes == 0
