"""What the picker must do to a fleet, shown with simulated engines and the picker of a server.

Eight engines of 8,000 tokens/s, three seeds. The traces' beginnings and short generated traffic run
always; with ``--long`` everything is played whole.
"""

import re
from collections.abc import Callable

import pytest
from simulated import GENERATED, PickedRun, simulated

from inferencecache.app.simulate import ESTIMATED, LEAST_LOAD, PREDICTED, ROUND_ROBIN
from inferencecache.picker.fleet import RankBy
from inferencecache.settings.simulate import SimulateSettings

SEEDS = (0, 1, 2)
SHARED = ("sessions", "conversation", "synthetic")
SHORT = 600
SATURATING = {"cold": 2.5, "sessions": 60.0, "conversation": 2.5, "synthetic": 2.0}
"""How many times faster traffic must arrive for queues to grow whatever the picker does."""

_SLACK_TOKENS = 64


LONG = (pytest.mark.long, pytest.mark.timeout(900))


def whole(name: str) -> int:
    """Return how many requests are played with ``--long``; 0 plays the whole trace."""
    return 4_000 if name in GENERATED else 0


def short(_name: str) -> int:
    """Return how many requests are played always."""
    return SHORT


SIZES = pytest.mark.parametrize("size", [short, pytest.param(whole, marks=LONG)])
FIRST_SEED = pytest.mark.parametrize(
    "seed", [SEEDS[0], *(pytest.param(seed, marks=LONG) for seed in SEEDS[1:])]
)
"""One seed always, the others with ``--long``."""


@SIZES
@pytest.mark.parametrize("seed", SEEDS)
def test_cold_traffic_is_served_no_later_than_by_load_alone(
    size: Callable[[str], int], seed: int
) -> None:
    """With nothing to find in any cache the default costs at most 2 %, at P50 and at P95."""
    settings = SimulateSettings(
        strategies=f"{LEAST_LOAD},{ESTIMATED}", requests=size("cold"), seed=seed
    )
    summary = simulated("cold", settings)
    least_load, default = summary.of(LEAST_LOAD), summary.of(ESTIMATED)

    assert default.hit_ratio == 0
    assert default.ttft_p50_ms <= 1.02 * least_load.ttft_p50_ms
    assert default.ttft_p95_ms <= 1.02 * least_load.ttft_p95_ms


@SIZES
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SHARED)
def test_shared_prefixes_are_served_a_quarter_earlier(
    size: Callable[[str], int], name: str, seed: int
) -> None:
    """The default's median is 25 % below those of round robin and of least load."""
    settings = SimulateSettings(
        strategies=f"{ROUND_ROBIN},{LEAST_LOAD},{ESTIMATED}", requests=size(name), seed=seed
    )
    summary = simulated(name, settings)
    default = summary.of(ESTIMATED)

    for blind in (ROUND_ROBIN, LEAST_LOAD):
        assert default.ttft_p50_ms <= 0.75 * summary.of(blind).ttft_p50_ms
        assert default.hit_ratio > summary.of(blind).hit_ratio


@SIZES
@FIRST_SEED
@pytest.mark.parametrize("name", sorted(SATURATING))
def test_nobody_has_half_again_its_share_of_a_saturated_fleet(
    size: Callable[[str], int], name: str, seed: int
) -> None:
    """However warm an engine is, it gets at most 1.5 times the mean of tokens to compute."""
    settings = SimulateSettings(
        strategies=f"{ESTIMATED},{PREDICTED}",
        requests=size(name),
        seed=seed,
        speed=SATURATING[name],
    )
    summary = simulated(name, settings)

    for strategy in (summary.of(ESTIMATED), summary.of(PREDICTED)):
        assert strategy.ttft_p50_ms > 1_000  # half of the requests wait, so it is saturated
        assert strategy.work_max_over_mean <= 1.5, strategy.name


@FIRST_SEED
@pytest.mark.parametrize("rank_by", [RankBy.ESTIMATED_TTFT, RankBy.PREDICTED_TTFT])
def test_a_restarted_engine_loses_what_it_does_not_deserve(rank_by: RankBy, seed: int) -> None:
    """Its cache is cold and the index does not know; 50 requests later that makes no difference.

    What it computes since it is warm again, and deserved. What comes later for what it once had are
    sessions that return after a long pause, each once.
    """
    played = PickedRun("sessions", rank_by, SimulateSettings(requests=1_500, seed=seed))
    engine, restart_at = 3, 500
    claims: dict[int, int] = {}
    for request in played.requests:
        if request.number == restart_at:
            played.run.caches[engine].clear()
        served, claimed_tokens = played.offer(request)
        if request.number >= restart_at and served.engine == engine:
            claims[request.number] = claimed_tokens
    played.run.end()
    is_undeserved = [
        claimed_tokens - played.run.served[number].cached_tokens > _SLACK_TOKENS
        for number, claimed_tokens in claims.items()
    ]

    assert any(is_undeserved[:50])
    assert sum(is_undeserved[50:]) <= 0.05 * len(is_undeserved[50:])


@FIRST_SEED
def test_an_engine_that_keeps_nothing_is_no_longer_believed(seed: int) -> None:
    """The index says that it holds what it was sent, and that is never so."""
    played = PickedRun(
        "sessions", RankBy.ESTIMATED_TTFT, SimulateSettings(requests=1_500, seed=seed)
    )
    engine = 3
    matched: list[int] = []
    for request in played.requests:
        played.run.caches[engine].clear()
        served, claimed_tokens = played.offer(request)
        if served.engine == engine and claimed_tokens > _SLACK_TOKENS:
            matched.append(_matched_tokens(played.strategy.choices[request.number].reason))
    played.run.end()

    believed = sum(tokens > _SLACK_TOKENS for tokens in matched)
    assert 0 < believed <= 50


def _matched_tokens(reason: str) -> int:
    """Return what the picker went by, from what it says of its choice."""
    found = re.search(r"matched=(\d+)/", reason)
    return int(found.group(1)) if found else 0
