"""The floors under a ranking."""

import pytest

from inferencecache.ranking import RankedReplica, keep_matched, reaches_floor, round_float32


def ranked(score: float = 1.0, tokens: int = 64) -> RankedReplica:
    """Return a replica with the given score and depth."""
    return RankedReplica("r", score, tokens, 1.0, 1, 1)


@pytest.mark.parametrize(("floor", "kept"), [(64, [64, 100]), (65, [100]), (0, [100, 64, 1])])
def test_token_floor_drops_short_matches(floor: int, kept: list[int]) -> None:
    """Matches below the floor go, the rest keep their order; 0 keeps all."""
    rows = [ranked(tokens=100), ranked(tokens=64), ranked(tokens=1)]

    left = keep_matched(rows, floor)

    assert sorted(r.matched_tokens for r in left) == sorted(kept)


@pytest.mark.parametrize(
    ("score", "floor", "expected"),
    [
        (round_float32([0.1])[0], 0.1, True),
        (round_float32([0.7])[0], 0.7, True),
        (0.0999, 0.1, False),
        (0.0, 0.0, True),
        (0.0, -1.0, True),
    ],
)
def test_score_floor_compares_as_float32(score: float, floor: float, expected: bool) -> None:  # noqa: FBT001 - a table column
    """A score equal to the floor in single precision reaches it; 0 or less skips the check."""
    assert reaches_floor([ranked(score=score)], floor) is expected


def test_nothing_reaches_a_floor() -> None:
    """An empty ranking reaches no positive floor."""
    assert not reaches_floor([], 0.1)
