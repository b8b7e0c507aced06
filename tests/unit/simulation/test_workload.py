"""Workloads are what their settings say, and the same for the same seed."""

from random import Random

import pytest

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.simulate import ColdSettings, SessionSettings
from inferencecache.simulation import (
    FleetRequest,
    TraceRequest,
    cold_workload,
    session_workload,
    trace_workload,
)


def drawn(seed: int = 1) -> Random:
    """Return a source of random numbers."""
    return Random(seed)


def trace_request(timestamp_ms: int, *hash_ids: int) -> TraceRequest:
    """Return a request whose last block is a token short."""
    return TraceRequest(
        timestamp_ms=timestamp_ms,
        input_length=512 * len(hash_ids) - 1,
        output_length=7,
        hash_ids=hash_ids,
    )


def test_a_trace_keeps_its_prompts_and_spreads_equal_timestamps() -> None:
    """Two requests of one timestamp lie between it and the next, the last ones stay."""
    trace = [trace_request(0, 1, 2), trace_request(0, 1, 3), trace_request(3_000, 1, 2, 4)]

    first, second, third = trace_workload(trace, 2.0, drawn())

    assert 0 <= first.arrival_ns <= second.arrival_ns < 1_500 * NS_PER_MS
    assert third.arrival_ns == 1_500 * NS_PER_MS
    assert [each.number for each in (first, second, third)] == [0, 1, 2]
    assert [each.prompt_tokens for each in (first, second, third)] == [1_023, 1_023, 1_535]
    assert first.block_hashes == second.block_hashes == third.block_hashes[:1]
    assert third.output_tokens == 7


def test_a_turn_says_everything_again_and_some_more() -> None:
    """Prompts of one session are prefixes of one another; all begin with a system prompt."""
    settings = SessionSettings(applications=2, system_tokens=1_024, turn_tokens_mean=2_000.0)

    requests = session_workload(300, 1.0, settings, drawn())

    starts = {tuple(request.block_hashes[:2]) for request in requests}
    assert len(starts) == 2
    longer = [
        (one, other)
        for one in requests[:50]
        for other in requests
        if other.number > one.number and _extends(one, other)
    ]
    assert longer
    for one, other in longer:
        assert one.arrival_ns + one.output_tokens * settings.answer_token_ns < other.arrival_ns


def _extends(one: FleetRequest, other: FleetRequest) -> bool:
    """Return whether *other* begins with more of *one* than the system prompt."""
    hashes = one.block_hashes
    return len(hashes) > 2 and other.block_hashes[: len(hashes)] == hashes


@pytest.mark.parametrize("turns_mean", [1.0, 4.0])
def test_sessions_have_the_rate_and_the_turns_that_they_should(turns_mean: float) -> None:
    """Over many requests the means come out."""
    settings = SessionSettings(
        requests_per_s=50.0, turns_mean=turns_mean, system_tokens=0, pause_mean_ns=NS_PER_S
    )

    requests = session_workload(6_000, 1.0, settings, drawn())

    assert len(requests) / (requests[-1].arrival_ns / NS_PER_S) == pytest.approx(50.0, rel=0.15)
    arrivals = [request.arrival_ns for request in requests]
    assert arrivals == sorted(arrivals)
    openings = [request for request in requests if request.block_hashes]
    firsts = {request.block_hashes[0] for request in openings}
    assert len(openings) / len(firsts) == pytest.approx(turns_mean, rel=0.25)


def test_cold_prompts_share_nothing() -> None:
    """No block comes twice, and half of the prompts are longer than the median."""
    settings = ColdSettings(prompt_tokens_median=2_000, prompt_tokens_max=10_000)

    requests = cold_workload(1_000, 1.0, settings, drawn())

    hashes = [block for request in requests for block in request.block_hashes]
    assert len(set(hashes)) == len(hashes)
    assert max(request.prompt_tokens for request in requests) == 10_000
    longer = sum(request.prompt_tokens > 2_000 for request in requests)
    assert 450 < longer < 550
    for request in requests:
        assert len(request.block_hashes) == request.prompt_tokens // 512


def test_a_seed_gives_the_same_requests_and_another_one_others() -> None:
    """Everything that is drawn comes from the source that is handed in."""
    settings = SessionSettings()

    once = session_workload(100, 1.0, settings, drawn(3))

    assert session_workload(100, 1.0, settings, drawn(3)) == once
    assert session_workload(100, 1.0, settings, drawn(4)) != once
