"""The 99th percentile of the last durations, whatever has come before them."""

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from inferencecache.picker.load.observed_durations import ObservedDurations


@given(st.lists(st.integers(0, 20), max_size=60), st.integers(1, 10))
def test_only_the_last_ones_count(durations_ns: list[int], samples_max: int) -> None:
    """It is that of a sorted list of the last few; equal ones are told apart by nothing."""
    observed = ObservedDurations(samples_max)
    for number, duration_ns in enumerate(durations_ns, start=1):
        observed.add(duration_ns)
        last = sorted(durations_ns[max(0, number - samples_max) : number])

        assert len(observed) == len(last)
        assert observed.high_ns() == last[ceil(0.99 * len(last)) - 1]


def test_before_the_first_there_is_none() -> None:
    """Nothing observed is 0."""
    assert ObservedDurations(3).high_ns() == 0
