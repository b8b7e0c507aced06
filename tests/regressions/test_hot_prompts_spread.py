"""Load counts from the Pick on: neither a warm worker gets everything, nor the first of a list."""

from collections import Counter

import pytest
from fleets import ChooserRig, fleet, question, row, tier, worker_set
from known_prefixes import KnownPrefixes

from inferencecache.clock import NS_PER_S
from inferencecache.picker.choice import QosClass
from inferencecache.picker.decisions import Ending
from inferencecache.picker.load import EngineSignal

PAIR = worker_set("s", row("m"), addresses=["a:1", "b:1"])
IDLE = (0, 0, 0)


@pytest.mark.parametrize("qos", [QosClass.INTERACTIVE, QosClass.BATCH])
def test_a_hot_prompt_does_not_drain_a_fleet_to_one_worker(qos: QosClass) -> None:
    """200 Picks of which nobody reports anything: a is warm, and both are used.

    What a has is worth 100 ms, that is a hundred requests that only decode.
    """
    prefix = KnownPrefixes({"a:1": 800}, prompt_tokens=801)
    rig = ChooserRig(fleet(tier("t", PAIR)), prefix=prefix)
    names = Counter(rig.chosen(question(qos=qos)).name for _ in range(200))
    assert names["a:1"] > names["b:1"] > 10


@pytest.mark.parametrize("ends", [True, False], ids=["ended at once", "in flight"])
def test_ties_are_spread(*, ends: bool) -> None:
    """Of 1,000 cold Picks over two workers neither has more than 60 %."""
    rig = ChooserRig(fleet(tier("t", PAIR)))
    pick = rig.passed if ends else rig.chosen
    names = Counter(pick().name for _ in range(1_000))
    assert max(names.values()) <= 600


def test_a_worker_that_goes_and_comes_back_ends_at_zero() -> None:
    """Its three requests end afterwards: nothing is left, and nothing is below it."""
    alone = worker_set("s", row("m"), addresses=["a:1"])
    rig = ChooserRig(fleet(tier("t", alone)))
    choices = [rig.chosen(question(prompt_tokens=50)) for _ in range(3)]
    rig.install(fleet())
    rig.install(fleet(tier("t", alone)))
    assert rig.knowledge.loads.of("a:1") == (3, 150, 0)
    for choice in choices:
        assert choice.follower is not None
        choice.follower.ended(Ending.FINISHED, None)
        choice.follower.ended(Ending.FINISHED, None)
    assert rig.knowledge.loads.of("a:1") == IDLE


def test_stale_signals_are_no_saturation() -> None:
    """Engines that were full when they were last heard of are picked all the same."""
    rig = ChooserRig(fleet(tier("t", PAIR)))
    for name in ("a:1", "b:1"):
        full = EngineSignal(waiting=900, running=256, cache_usage=1.0)
        rig.knowledge.signals.put(name, full, rig.clock.monotonic_ns())
    assert "saturated=1" in rig.passed().reason
    rig.clock.advance_ns(60 * NS_PER_S)
    choice = rig.passed()
    assert "saturated" not in choice.reason
    assert choice.explanation is not None
    assert {found.waiting for found in choice.explanation.candidates} == {0}
