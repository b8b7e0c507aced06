"""What a simulation looks like on a terminal."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from inferencecache.cli.simulate_table import print_simulation
from inferencecache.simulation import SimulationSummary, StrategyOutcome

SLOW = StrategyOutcome(
    name="weighted-profile",
    requests=2,
    ttft_p50_ms=1_000_001.0,
    ttft_p95_ms=1_000_002.0,
    ttft_p99_ms=1_000_003.0,
    hit_ratio=0.25,
    requests_max_over_mean=8.0,
    work_max_over_mean=7.0,
    requests_by_engine=(2, 0),
    ttft_curve_ms=(),
    duration_s=0.1,
)


def printed(workload: str, outcome: StrategyOutcome, width: int = 80) -> str:
    """Return what is printed of one strategy."""
    stream = io.StringIO()
    parameters = {"requests": "2", "engines": "8"}
    summary = SimulationSummary(workload=workload, parameters=parameters, strategies=[outcome])
    print_simulation(summary, Console(file=stream, width=width, _environ={}))
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 20])
def test_no_number_is_cut_however_little_room_there_is(width: int) -> None:
    """Nor a name: where first tokens take days, lines are longer than a terminal."""
    days = replace(SLOW, ttft_p50_ms=1e9, ttft_p95_ms=2e9, ttft_p99_ms=3e9)
    lines = [line.split() for line in printed("cold", days, width).splitlines()]
    times = ["1,000,000,000", "2,000,000,000", "3,000,000,000"]
    assert ["weighted-profile", *times, "0.250", "8.00", "7.00"] in lines


@pytest.mark.parametrize("workload", ["[red]hot[/red]", "a:smile:$b_{$", "[/]"])
def test_the_name_of_a_trace_is_no_markup(workload: str) -> None:
    """It stands there as the file is called."""
    assert printed(workload, SLOW).startswith(f"{workload}: 2 requests, 8 engines")


def test_nothing_is_cut_at_eighty_columns() -> None:
    """Not even where first tokens take a quarter of an hour."""
    text = printed("cold", SLOW)
    lines = [line.split() for line in text.splitlines()]
    assert max(map(len, text.splitlines())) <= 80
    assert ["TTFT", "p50", "p95", "p99", "hit", "ratio", "requests*", "work*"] in lines
    times = ["1,000,001", "1,000,002", "1,000,003"]
    assert ["weighted-profile", *times, "0.250", "8.00", "7.00"] in lines
