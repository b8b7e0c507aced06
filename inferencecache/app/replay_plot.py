"""Draw the hit ratios of a replay into a PNG or SVG file."""

from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from inferencecache.app.plot_file import plot_file
from inferencecache.simulation import ReplaySummary

_STRATEGIES: Final = (
    ("round robin", "round_robin", "#8c8c8c"),
    ("cache-aware", "cache_aware", "#0072b2"),
    ("one infinite cache", "infinite", "#d9a400"),
)


def draw_plot(summary: ReplaySummary, path: Path) -> None:
    """Write the plot: bars for the result, curves for the way there.

    Args:
        summary: What to draw.
        path: Ends in ``.png`` or ``.svg``.

    Raises:
        OSError: The file cannot be written.
    """
    title = f"{summary.trace}: {summary.replicas} replicas of {summary.cache_blocks:,} blocks"
    with plot_file(path, (9, 4.2), title) as figure:
        bars, curves = figure.subplots(1, 2, width_ratios=(2, 3), sharey=True)
        _draw_bars(bars, summary)
        _draw_curves(curves, summary)


def _draw_bars(axes: Axes, summary: ReplaySummary) -> None:
    """Draw one bar per strategy, labelled with its ratio."""
    names = [name for name, _, _ in _STRATEGIES]
    ratios = [getattr(summary, key).hit_ratio for _, key, _ in _STRATEGIES]
    bars = axes.bar(names, ratios, color=[color for _, _, color in _STRATEGIES], width=0.65)
    axes.bar_label(bars, [f"{ratio:.1%}" for ratio in ratios], padding=2)
    axes.set_xticks(range(len(names)), [name.replace("one ", "one\n") for name in names])
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set_ylim(0, max(0.05, *ratios) * 1.15)
    axes.set_ylabel("prompt tokens found cached")
    axes.set_title("whole trace", fontsize=10)


def _draw_curves(axes: Axes, summary: ReplaySummary) -> None:
    """Draw how the ratios developed."""
    requests = [point.requests for point in summary.curve]
    for name, key, color in _STRATEGIES:
        ratios = [getattr(point, key) for point in summary.curve]
        axes.plot(requests, ratios, color=color, label=name, linewidth=1.8)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlim(left=0)
    axes.set_xlabel("requests served")
    axes.set_title("over everything served so far", fontsize=10)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(frameon=False, loc="upper left")
