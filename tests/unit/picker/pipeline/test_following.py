"""From reports to response plugins."""

import pytest
from pipeline_rig import Following, Noted, Scoring, director, pipeline, question, raising, workers

from inferencecache.picker.decisions import (
    AbortReport,
    DecisionFollower,
    Ending,
    FinalTokenReport,
    FirstTokenReport,
)
from inferencecache.picker.pipeline import FailureKind, Hook, Placed, TerminationCause, Usage

FIRST = FirstTokenReport(observed_ttft_ms=180, upstream_status=200)
FINAL = FinalTokenReport(
    model="served",
    prompt_tokens=512,
    completion_tokens=64,
    cached_tokens=480,
    itl_bucket_counts=(1, 2),
    itl_bucket_layout=1,
)
ABORT = AbortReport(reason="PULL_FAILED", detail="gone")


def followed(noted: Noted | None = None, **plugins: object) -> DecisionFollower:
    """Place a request and return who follows it."""
    run = director(pipeline(s=Scoring(), **plugins), noted).open(question(request_id="r-1"))
    placed = run.pre_request(run.rank(workers("a")))
    assert isinstance(placed, Placed)
    assert placed.follower is not None
    return placed.follower


def test_a_first_token_is_the_header_and_the_start_of_the_body() -> None:
    """The header alone has headers."""
    following = Following()
    followed(follow=following).first_token(FIRST)
    (header,), (body,) = following.headers, following.bodies
    assert header.headers == {":status": "200"}
    assert (header.status, header.observed_ttft_ms, header.request_id) == (200, 180, "r-1")
    assert not header.start_of_stream
    assert body.headers == {}
    assert (body.start_of_stream, body.end_of_stream, body.status) == (True, False, 200)


def test_a_final_token_is_the_end_with_the_usage() -> None:
    """The stream had started already."""
    following = Following()
    follower = followed(follow=following)
    follower.first_token(FIRST)
    follower.ended(Ending.FINISHED, FINAL)
    end = following.bodies[-1]
    assert (end.start_of_stream, end.end_of_stream) == (False, True)
    assert end.termination is TerminationCause.FINISHED
    assert end.usage == Usage(
        prompt_tokens=512,
        completion_tokens=64,
        cached_tokens=480,
        itl_bucket_counts=(1, 2),
        itl_bucket_layout=1,
    )
    assert end.served_model == "served"


def test_a_response_in_one_piece_is_start_and_end() -> None:
    """Nobody reported a first token, so nothing is known of the header."""
    following = Following()
    followed(follow=following).ended(Ending.FINISHED, FINAL)
    assert following.headers == []
    (body,) = following.bodies
    assert (body.start_of_stream, body.end_of_stream) == (True, True)


@pytest.mark.parametrize(
    ("ending", "report", "cause", "reason"),
    [
        (Ending.ABORTED, ABORT, TerminationCause.ABORTED, "PULL_FAILED"),
        (Ending.EXPIRED, None, TerminationCause.EXPIRED, ""),
        (Ending.EVICTED, None, TerminationCause.EVICTED, ""),
        (Ending.STOPPED, None, TerminationCause.STOPPED, ""),
        (Ending.UNSETTLED, None, TerminationCause.WITHDRAWN, ""),
    ],
)
def test_any_other_end_says_why(
    ending: Ending, report: AbortReport | None, cause: TerminationCause, reason: str
) -> None:
    """There is no start, since there was no body, and no usage."""
    following = Following()
    followed(follow=following).ended(ending, report)
    (body,) = following.bodies
    assert body.end_of_stream
    assert not body.start_of_stream
    assert (body.termination, body.abort_reason, body.usage) == (cause, reason, None)


def test_every_ending_has_a_cause() -> None:
    """A new one must be given a name for plugins."""
    for ending in Ending:
        following = Following()
        followed(follow=following).ended(ending, None)
        assert following.bodies[0].termination is not None


def test_nothing_comes_behind_the_end() -> None:
    """Neither a second end nor a late first token."""
    following = Following()
    follower = followed(follow=following)
    follower.ended(Ending.ABORTED, ABORT)
    follower.ended(Ending.EXPIRED, None)
    follower.first_token(FIRST)
    assert len(following.bodies) == 1
    assert following.headers == []


def test_a_second_first_token_is_none() -> None:
    """The stream starts once."""
    following = Following()
    follower = followed(follow=following)
    follower.first_token(FIRST)
    follower.first_token(FIRST)
    assert len(following.headers) == len(following.bodies) == 1


def test_a_response_plugin_that_breaks_harms_nobody() -> None:
    """It is counted, and the others are told."""
    noted, following = Noted(), Following()
    follower = followed(
        noted, h=raising("response_header"), b=raising("response_body"), follow=following
    )
    follower.first_token(FIRST)
    follower.ended(Ending.FINISHED, FINAL)
    assert len(following.bodies) == 2
    assert noted.failures == [
        ("h", Hook.RESPONSE_HEADER, FailureKind.RAISED),
        ("b", Hook.RESPONSE_BODY, FailureKind.RAISED),
        ("b", Hook.RESPONSE_BODY, FailureKind.RAISED),
    ]
