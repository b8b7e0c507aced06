"""Draw what a simulation found out into a PNG or SVG file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from inferencecache.app.plot_file import plot_file
from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.simulation import CURVE_PERCENTS, SimulationSummary

_COLORS: Final = ("#8c8c8c", "#56b4e9", "#d9a400", "#cc79a7", "#0072b2", "#009e73")
_MS_PER_S: Final = NS_PER_S // NS_PER_MS


def draw_simulation(summary: SimulationSummary, path: Path) -> None:
    """Write the plot: how times to the first token are distributed, hit ratios, imbalance.

    Args:
        summary: What to draw.
        path: Ends in ``.png`` or ``.svg``.

    Raises:
        OSError: The file cannot be written.
    """
    title = (
        f"{summary.workload}: {summary.parameters['engines']} engines, "
        f"seed {summary.parameters['seed']}"
    )
    with plot_file(path, (12, 4.2), title) as figure:
        times, hits, work = figure.subplots(1, 3, width_ratios=(5, 2, 2))
        _draw_times(times, summary)
        _draw_hits(hits, summary)
        _draw_work(work, summary)


def _draw_times(axes: Axes, summary: SimulationSummary) -> None:
    """Draw which share of the requests has its first token after which time."""
    shares = [percent / 100 for percent in CURVE_PERCENTS]
    for number, strategy in enumerate(summary.strategies):
        seconds = [value_ms / _MS_PER_S for value_ms in strategy.ttft_curve_ms]
        axes.plot(
            seconds,
            shares,
            color=_COLORS[number % len(_COLORS)],
            label=strategy.name,
            linewidth=1.8,
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xlabel("time to the first token, seconds")
    axes.set_ylabel("requests that have it by then")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="lower right")


def _draw_hits(axes: Axes, summary: SimulationSummary) -> None:
    """Draw which share of the prompt tokens was found cached."""
    ratios = [strategy.hit_ratio for strategy in summary.strategies]
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xlim(0, max(0.05, *ratios) * 1.35)
    axes.set_xlabel("prompt tokens found cached")
    _draw_bars(axes, summary, ratios, [f"{ratio:.1%}" for ratio in ratios])


def _draw_work(axes: Axes, summary: SimulationSummary) -> None:
    """Draw how much more than the mean the busiest engine has to compute."""
    loads = [strategy.work_max_over_mean for strategy in summary.strategies]
    axes.set_xlim(0, max(loads) * 1.35)
    axes.set_xlabel("most work / mean")
    _draw_bars(axes, summary, loads, [f"{load:.2f}" for load in loads])
    axes.set_yticks([])


def _draw_bars(
    axes: Axes, summary: SimulationSummary, values: Sequence[float], labels: Sequence[str]
) -> None:
    """Draw one labelled bar per strategy, the first on top."""
    names = [strategy.name for strategy in summary.strategies]
    colors = [_COLORS[number % len(_COLORS)] for number in range(len(names))]
    bars = axes.barh(names, values, color=colors, height=0.65)
    axes.bar_label(bars, labels, padding=2)
    axes.invert_yaxis()
