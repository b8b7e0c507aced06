"""What surrounds a decision is timed for a sample of lookups."""

from inferencecache.clock import ManualClock
from inferencecache.transport.lookup_stages import LookupStages


def test_one_lookup_in_so_many_is_due() -> None:
    """Counted from the start, and anew after each."""
    stages = LookupStages(ManualClock(), sample_interval=4)

    due = [stages.is_due() for _ in range(9)]

    assert due == [False, False, False, True, False, False, False, True, False]


def test_each_stage_has_its_own_numbers() -> None:
    """What is measured does its work all the same."""
    clock = ManualClock()
    stages = LookupStages(clock, sample_interval=4)

    def double(number: int) -> int:
        clock.advance_ns(number * 1_000)
        return number * 2

    assert [stages.timed("read", double, number) for number in (1, 2)] == [2, 4]
    assert stages.timed("write", double, 5) == 10
    (family,) = stages.families()
    assert sum(family.spreads["read",].counts) == 2
    assert family.spreads["read",].sum_ns == 3_000
    assert sum(family.spreads["write",].counts) == 1
    assert family.spreads["write",].sum_ns == 5_000
