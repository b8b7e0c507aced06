"""Pickers: in which order they put what was scored."""

from collections import Counter
from random import Random

import pytest
from pipeline_rig import draws, made, request, workers

from inferencecache.picker.pipeline import Scored


def scored(**points: float) -> list[Scored]:
    """Return endpoints with these scores."""
    return [Scored(workers(name)[0], score) for name, score in points.items()]


def order(picked: list[Scored]) -> str:
    """Return the names of *picked*."""
    return "".join(entry.endpoint.name for entry in picked)


def test_max_score_puts_equal_scores_in_random_order() -> None:
    """0.9 takes the second of two, 0.1 the first; b and d are no choice."""
    entries = scored(d=0.1, a=1.0, b=0.5, c=1.0)
    assert order(made("max-score-picker", draw=draws(0.9)).pick(request(), entries)) == "cabd"
    assert order(made("max-score-picker", draw=draws(0.1)).pick(request(), entries)) == "acbd"


def test_max_score_gives_each_of_the_best_the_same_chance() -> None:
    """As first and as second: of 6,000, each pair of three 1,000 within four deviations of 29."""
    picker = made("max-score-picker", draw=Random(3).random)
    entries = scored(a=1.0, x=0.0, b=1.0, c=1.0)
    counts = Counter(order(picker.pick(request(), entries))[:2] for _ in range(6_000))
    assert sorted(counts) == ["ab", "ac", "ba", "bc", "ca", "cb"]
    assert all(count == pytest.approx(1_000, abs=116) for count in counts.values())


def test_random_ignores_scores() -> None:
    """Lowest number first."""
    picker = made("random-picker", draw=draws(0.9, 0.5, 0.1))
    assert order(picker.pick(request(), scored(a=1.0, b=0.5, c=0.0))) == "cba"


def test_weighted_random_takes_the_highest_key() -> None:
    """0.5 ** (1 / 0.5) = 0.25 beats 0.2 ** (1 / 1) = 0.2; who has no points comes last."""
    picker = made("weighted-random-picker", draw=draws(0.9, 0.2, 0.5))
    assert order(picker.pick(request(), scored(z=0.0, a=1.0, b=0.5))) == "baz"


def test_weighted_random_is_uniform_without_points() -> None:
    """Highest number first."""
    picker = made("weighted-random-picker", draw=draws(0.1, 0.9))
    assert order(picker.pick(request(), scored(a=0.0, b=-1.0))) == "ba"


@pytest.mark.parametrize("unit", [1.0, 1e-4, 1e-300])
def test_weighted_random_picks_in_proportion(unit: float) -> None:
    """3 to 1: of 4,000 draws 3,000 plus or minus four standard deviations of 27, at any height."""
    picker = made("weighted-random-picker", draw=Random(7).random)
    entries = scored(b=0.25 * unit, a=0.75 * unit)
    counts = Counter(order(picker.pick(request(), entries))[0] for _ in range(4_000))
    assert counts["a"] == pytest.approx(3_000, abs=110)


@pytest.mark.parametrize("name", ["max-score-picker", "random-picker", "weighted-random-picker"])
def test_all_endpoints_come_back(name: str) -> None:
    """Whoever is second is needed when a PreRequest plugin fails; pasted parameters are read."""
    picker = made(name, draw=Random(1).random, maxNumOfEndpoints=1)
    for entries in (scored(a=1.0), scored(a=1.0, b=0.0, c=0.3)):
        assert sorted(order(picker.pick(request(), entries))) == sorted(order(entries))
