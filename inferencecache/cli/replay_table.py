"""The result of a replay as tables."""

from collections.abc import Mapping

from rich import box
from rich.console import Console
from rich.table import Table

from inferencecache.cli.whole_table import print_whole, titled
from inferencecache.simulation import LatencySummary, ReplaySummary, StrategySummary


def print_summary(summary: ReplaySummary, console: Console) -> None:
    """Print the comparison, what it comes to, the facts behind it, and one row per replica.

    Args:
        summary: What to print.
        console: Where.
    """
    print_whole(_strategies(summary), console)
    console.print(f"{verdict(summary)}\n", highlight=False)
    console.print(_facts(summary))
    print_whole(_replicas(summary), console)


def verdict(summary: ReplaySummary) -> str:
    """Return in one sentence what cache-aware routing gained, and what there was to gain.

    Args:
        summary: The result.
    """
    aware, blind = summary.cache_aware.hit_tokens, summary.round_robin.hit_tokens
    if not summary.infinite.hit_tokens:
        return "No prompt begins like an earlier one, so there was nothing to find cached."
    share = f"{aware / summary.infinite.hit_tokens:.0%} of what there was"
    if not blind:
        return f"Cache-aware routing found {share}; round robin found nothing."
    return f"Cache-aware routing found {aware / blind:.1f} x what round robin found, {share}."


def _strategies(summary: ReplaySummary) -> Table:
    """Return one row per way of routing."""
    title = titled(
        f"{summary.trace}: {summary.replicas} replicas of {summary.cache_blocks:,} blocks"
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("", no_wrap=True)
    for heading in ("hit ratio", "tokens cached", "requests*", "tokens*", "computed*"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_row(*_strategy("round robin", summary.round_robin))
    table.add_row(*_strategy("cache-aware", summary.cache_aware), style="bold")
    table.add_row(*_strategy("infinite cache", summary.infinite)[:3], "-", "-", "-")
    table.caption = "* load of the busiest replica, as a multiple of the mean"
    table.caption_justify = "left"
    return table


def _strategy(name: str, strategy: StrategySummary) -> tuple[str, ...]:
    """Return the cells of one strategy."""
    return (
        name,
        f"{strategy.hit_ratio:.3f}",
        f"{strategy.hit_tokens:,}",
        f"{strategy.requests_max_over_mean:.2f}",
        f"{strategy.prompt_tokens_max_over_mean:.2f}",
        f"{strategy.computed_tokens_max_over_mean:.2f}",
    )


def _facts(summary: ReplaySummary) -> Table:
    """Return the remaining numbers, one per row."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    requests = summary.cache_aware.requests
    table.add_row("requests", f"{requests:,}")
    table.add_row("prompt tokens", f"{summary.cache_aware.prompt_tokens:,}")
    table.add_row("reason codes", _shares(summary.reason_codes, requests))
    table.add_row("routed by", _shares(summary.routes, requests))
    table.add_row(
        "blocks reported",
        f"{summary.stored_blocks:,} stored, {summary.evicted_blocks:,} evicted",
    )
    table.add_row("lookup latency", _latency(summary.lookup))
    table.add_row("duration", f"{summary.duration_s:.1f} s, seed {summary.seed}")
    return table


def _shares(counts: Mapping[str, int], total: int) -> str:
    """Return each name with its share, largest first, without those that never came."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count / total:.1%}" for name, count in ordered if count)


def _latency(latency: LatencySummary) -> str:
    """Return the percentiles in milliseconds."""
    return (
        f"p50 {latency.p50_us / 1_000:.2f} ms, p99 {latency.p99_us / 1_000:.2f} ms, "
        f"max {latency.max_us / 1_000:.2f} ms"
    )


def _replicas(summary: ReplaySummary) -> Table:
    """Return one row per replica under cache-aware routing."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("replica", no_wrap=True)
    for heading in ("requests", "prompt tokens", "tokens cached", "hit ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in summary.per_replica:
        table.add_row(
            row.replica_id,
            f"{row.requests:,}",
            f"{row.prompt_tokens:,}",
            f"{row.hit_tokens:,}",
            f"{row.hit_ratio:.3f}",
        )
    return table
