"""What stands in the plot of a simulation."""

import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib as mpl
import pytest

from inferencecache.app.simulate_plot import draw_simulation
from inferencecache.simulation import CURVE_PERCENTS, SimulationSummary, StrategyOutcome

OUTCOME = StrategyOutcome(
    name="least-load",
    requests=2,
    ttft_p50_ms=50.0,
    ttft_p95_ms=95.0,
    ttft_p99_ms=99.0,
    hit_ratio=0.079,
    requests_max_over_mean=1.0,
    work_max_over_mean=1.0,
    requests_by_engine=(1, 1),
    ttft_curve_ms=[float(percent) for percent in CURVE_PERCENTS],
    duration_s=0.1,
)


def texts(workload: str, path: Path) -> list[str]:
    """Return all that is written in the plot of a workload."""
    parameters = {"requests": "2", "engines": "8", "seed": "0"}
    summary = SimulationSummary(workload=workload, parameters=parameters, strategies=[OUTCOME])
    with mpl.rc_context({"svg.fonttype": "none"}):
        draw_simulation(summary, path)
    drawn = ET.parse(path)  # noqa: S314 - our own file
    return [node.text or "" for node in drawn.iter() if node.tag.endswith("}text")]


@pytest.mark.parametrize("workload", ["a$b_{$.jsonl", "a$b$.jsonl", r"$\nonsense{$"])
def test_the_name_of_a_trace_is_no_formula(workload: str, tmp_path: Path) -> None:
    """It stands there as the file is called."""
    assert f"{workload}: 8 engines, seed 0" in texts(workload, tmp_path / "p.svg")


def test_an_axis_says_where_its_marks_are(tmp_path: Path) -> None:
    """Between whole percents, too."""
    written = texts("t", tmp_path / "p.svg")
    assert {"0.0%", "2.5%", "5.0%", "7.5%"} <= set(written)
    assert {"0%", "20%", "100%"} <= set(written)
