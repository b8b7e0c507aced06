"""What surrounds a decision is timed for a sample of lookups."""

from inferencecache.clock import ManualClock
from inferencecache.transport.lookup_stages import LookupStages


def test_one_call_in_so_many_is_measured() -> None:
    """All calls do the work; each stage has its own numbers."""
    clock = ManualClock()
    stages = LookupStages(clock, sample_interval=4)

    def double(number: int) -> int:
        clock.advance_ns(1_000)
        return number * 2

    read = stages.timed("read", double)
    stages.timed("write", double)
    assert [read(number) for number in range(9)] == [number * 2 for number in range(9)]
    (family,) = stages.families()
    assert sum(family.spreads["read",].counts) == 2
    assert family.spreads["read",].sum_ns == 2_000
    assert sum(family.spreads["write",].counts) == 0
