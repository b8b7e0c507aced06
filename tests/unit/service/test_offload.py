"""What the counters of an offload tier are made into."""

import pytest

from inferencecache.service.offload import t2_hit_rate
from inferencecache.types import StatsReport


@pytest.mark.parametrize(
    ("hits", "queries", "rate"),
    [
        (0, 0, None),
        (5, 0, None),
        (5, -1, None),
        (0, 100, 0.0),
        (60, 100, 0.6),
        (200, 100, 1.0),
        (-5, 100, 0.0),
    ],
)
def test_the_rate_is_absent_until_somebody_asks(
    hits: int, queries: int, rate: float | None
) -> None:
    """Without queries there is no rate; with some, 0 means that the tier has nothing."""
    assert t2_hit_rate(StatsReport(t2_hit_tokens=hits, t2_query_tokens=queries)) == rate


def test_a_replica_without_statistics_has_no_rate() -> None:
    """Nothing is made up."""
    assert t2_hit_rate(None) is None
