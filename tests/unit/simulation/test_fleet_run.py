"""A fleet in virtual time does what its strategies and engines do, and counts it."""

from random import Random

import pytest

from inferencecache.clock import NS_PER_MS, ManualClock
from inferencecache.settings.simulate import ColdSettings
from inferencecache.simulation import (
    CacheOutcome,
    ComputeRules,
    FleetRequest,
    FleetRules,
    FleetRun,
    LeastLoad,
    PrefixSticky,
    RoundRobin,
    cold_workload,
    outcome_of,
)

COMPUTE = ComputeRules(
    prefill_tokens_per_s=1_024_000,
    base_ns=NS_PER_MS,
    decode_token_ns=NS_PER_MS,
    concurrency_max=8,
)


def rules(engines: int = 2, cache_blocks: int = 100) -> FleetRules:
    """Return a fleet that computes two blocks in a millisecond."""
    return FleetRules(engines=engines, cache_blocks=cache_blocks, compute=COMPUTE)


def request(number: int, arrival_ms: float, blocks: str, output_tokens: int = 1) -> FleetRequest:
    """Return a request with a full block for each letter."""
    return FleetRequest(
        number=number,
        arrival_ns=int(arrival_ms * NS_PER_MS),
        prompt_tokens=512 * len(blocks) + 1,
        output_tokens=output_tokens,
        block_hashes=[blocks[: end + 1].encode() for end in range(len(blocks))],
    )


class Noted(RoundRobin):
    """Round robin that writes down what it is told, and when."""

    def __init__(self, engines: int, clock: ManualClock) -> None:
        super().__init__(engines, 0)
        self.clock = clock
        self.told: list[tuple[str, int, float, object]] = []

    def cached(self, engine: int, request: FleetRequest, outcome: CacheOutcome) -> None:
        """Note what is stored and evicted, there is one engine only."""
        assert engine == 0
        self._note("cached", request, (len(outcome.stored), len(outcome.evicted)))

    def first_token(self, request: FleetRequest, ttft_ns: int) -> None:
        """Note the time."""
        self._note("first token", request, ttft_ns / NS_PER_MS)

    def finished(self, request: FleetRequest, cached_tokens: int) -> None:
        """Note what was cached."""
        self._note("finished", request, cached_tokens)

    def _note(self, what: str, request: FleetRequest, detail: object) -> None:
        self.told.append((what, request.number, self.clock.now_ns() / NS_PER_MS, detail))


def test_a_strategy_is_told_everything_at_its_time() -> None:
    """One engine with room for three blocks, two prompts that share one."""
    clock = ManualClock()
    strategy = Noted(1, clock)
    run = FleetRun(rules(engines=1, cache_blocks=3), strategy, clock)

    run.play([request(0, 0, "ab", 3), request(1, 10, "acd")])

    step = 1 / 1_024
    assert [(what, who, detail) for what, who, _, detail in strategy.told] == [
        ("cached", 0, (2, 0)),
        ("first token", 0, pytest.approx(2 + step, abs=1e-5)),
        ("finished", 0, 0),
        ("cached", 1, (2, 1)),
        ("first token", 1, pytest.approx(2 + step, abs=1e-5)),
        ("finished", 1, 512),
    ]
    assert [at for _, _, at, _ in strategy.told] == pytest.approx(
        [1 + step, 2 + step, 4 + step, 11 + step, 12 + step, 12 + step], abs=1e-5
    )


def test_numbers_of_a_run_are_those_of_its_engines() -> None:
    """Two engines in turn: one gets long prompts it has cached, the other short ones."""
    run = FleetRun(rules(), RoundRobin(2, 0), ManualClock())
    run.play(
        [
            request(0, 0, "abcd"),
            request(1, 0, "x"),
            request(2, 10, "abcd"),
            request(3, 10, "y"),
        ]
    )

    outcome = outcome_of("round robin", run, 0.0)

    assert outcome.requests == 4
    assert outcome.hit_ratio == pytest.approx(2_048 / (2 * 2_049 + 2 * 513))
    assert outcome.requests_by_engine == [2, 2]
    assert outcome.work_max_over_mean == pytest.approx(2_050 * 2 / (2_050 + 1_026))
    times_ms = sorted((each.ttft_ns or 0) / NS_PER_MS for each in run.served)
    assert outcome.ttft_p50_ms == times_ms[1]
    assert outcome.ttft_p99_ms == outcome.ttft_curve_ms[-1] == times_ms[3]


def test_a_cleared_cache_holds_nothing() -> None:
    """A restart that nobody announces makes the next prompt cold."""
    run = FleetRun(rules(engines=1), RoundRobin(1, 0), ManualClock())
    run.offer(request(0, 0, "ab"))
    run.offer(request(1, 10, "ab"))
    run.offer(request(2, 20, "z"))
    run.caches[0].clear()
    run.offer(request(3, 30, "ab"))
    run.end()

    assert [each.cached_tokens for each in run.served] == [0, 1_024, 0, 0]


def test_least_load_spares_the_engine_that_still_answers() -> None:
    """A long answer counts until its end; of idle engines the one that waited longest is next."""
    run = FleetRun(rules(engines=3), LeastLoad(3, 0), ManualClock())

    placed = [
        run.offer(each).engine
        for each in (
            request(0, 0, "a", 1_000),
            request(1, 10, "b"),
            request(2, 20, "c"),
            request(3, 30, "d"),
            request(4, 2_000, "e"),
        )
    ]

    assert len(set(placed[:3])) == 3
    assert placed[3] == placed[1]
    assert placed[4] == placed[0]


def test_prefix_sticky_follows_the_longest_prefix_that_is_worth_it() -> None:
    """Half of the prompt must be known; less goes by load."""
    run = FleetRun(rules(engines=3), PrefixSticky(3, 0, 0.5), ManualClock())
    first = run.offer(request(0, 0, "abcd", 1_000)).engine

    same = run.offer(request(1, 1, "abcdefg", 1_000)).engine
    other = run.offer(request(2, 2, "abzzzzzz", 1_000)).engine

    assert same == first
    assert other != first


@pytest.mark.parametrize("seed", range(3))
def test_cold_traffic_loads_everybody_alike(seed: int) -> None:
    """Blind strategies are even where nothing tells engines apart, and sticky is least load."""
    requests = cold_workload(800, 1.0, ColdSettings(), Random(seed))
    outcomes = []
    for strategy in (RoundRobin(8, seed), LeastLoad(8, seed), PrefixSticky(8, seed, 0.5)):
        run = FleetRun(rules(engines=8), strategy, ManualClock())
        run.play(requests)
        outcomes.append(outcome_of(type(strategy).__name__, run, 0.0))

    assert [outcome.hit_ratio for outcome in outcomes] == [0, 0, 0]
    assert outcomes[0].requests_max_over_mean == 1
    assert outcomes[1].ttft_curve_ms == outcomes[2].ttft_curve_ms
    assert all(outcome.work_max_over_mean < 1.5 for outcome in outcomes)
