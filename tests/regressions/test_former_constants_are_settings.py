"""What other planes fix at compile time can be set: cap, times, ranker."""

import pytest

from inferencecache.settings.index import IndexSettings
from inferencecache.settings.knob import knobs_of
from inferencecache.settings.policy import PolicySettings
from inferencecache.settings.ranking import RankingSettings

DEFAULTS = {
    "max-entries": 1_000_000,
    "ttl": 1_800 * 10**9,
    "sweep-interval": 60 * 10**9,
    "pressure-weight": 1.0,
    "slo-tight-ttft-ms": 200,
    "slo-tight-bias": 1.0,
    "tenant-hot-min-hit-rate": 0.1,
    "tenant-hot-max-age": 300 * 10**9,
    "minimum-matched-tokens": 64,
    "routing-floor-score": 0.1,
}


@pytest.mark.parametrize("flag", DEFAULTS)
def test_constant_of_the_contract_is_the_default_of_a_flag(flag: str) -> None:
    """Each has a flag and a variable, and its default is the contract's number."""
    groups = (IndexSettings, RankingSettings, PolicySettings)
    knobs = {knob.flag: knob for group in groups for knob in knobs_of(group)}

    assert knobs[flag].default == DEFAULTS[flag]
    assert knobs[flag].env == "INFERENCECACHE_" + flag.upper().replace("-", "_")
