"""What a simulation looks like on a terminal."""

import io

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


def test_nothing_is_cut_at_eighty_columns() -> None:
    """Not even where first tokens take a quarter of an hour."""
    stream = io.StringIO()
    parameters = {"requests": "2", "engines": "8"}
    summary = SimulationSummary(workload="cold", parameters=parameters, strategies=[SLOW])
    print_simulation(summary, Console(file=stream, width=80, _environ={}))
    lines = [line.split() for line in stream.getvalue().splitlines()]
    assert ["TTFT", "p50", "p95", "p99", "hit", "ratio", "requests*", "work*"] in lines
    times = ["1,000,001", "1,000,002", "1,000,003"]
    assert ["weighted-profile", *times, "0.250", "8.00", "7.00"] in lines
