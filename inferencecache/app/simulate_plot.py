"""Draw what a simulation found out into a PNG or SVG file."""

from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.simulation import CURVE_PERCENTS, SimulationSummary

_COLORS: Final = ("#8c8c8c", "#56b4e9", "#d9a400", "#cc79a7", "#0072b2", "#009e73")
_MS_PER_S: Final = NS_PER_S // NS_PER_MS


def draw_simulation(summary: SimulationSummary, path: Path) -> None:
    """Write the plot: the distribution of times to the first token, and hit ratios.

    Args:
        summary: What to draw.
        path: Ends in ``.png`` or ``.svg``.

    Raises:
        OSError: The file cannot be written.
    """
    with mpl.rc_context(
        {
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "svg.hashsalt": "inferencecache",  # equal numbers give equal files
        }
    ):
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        times, bars = figure.subplots(1, 2, width_ratios=(3, 2))
        _draw_times(times, summary)
        _draw_bars(bars, summary)
        figure.suptitle(
            f"{summary.workload}: {summary.parameters['engines']} engines, "
            f"seed {summary.parameters['seed']}",
            fontsize=11,
        )
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else {}
        figure.savefig(path, dpi=144, metadata=metadata)


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
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_xlabel("time to the first token, seconds")
    axes.set_ylabel("requests that have it by then")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="lower right")


def _draw_bars(axes: Axes, summary: SimulationSummary) -> None:
    """Draw one bar per strategy, labelled with its hit ratio."""
    names = [strategy.name for strategy in reversed(summary.strategies)]
    ratios = [strategy.hit_ratio for strategy in reversed(summary.strategies)]
    count = len(names)
    colors = [_COLORS[(count - 1 - at) % len(_COLORS)] for at in range(count)]
    bars = axes.barh(names, ratios, color=colors, height=0.65)
    axes.bar_label(bars, [f"{ratio:.1%}" for ratio in ratios], padding=2)
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_xlim(0, max(0.05, *ratios) * 1.2)
    axes.set_xlabel("prompt tokens found cached")
