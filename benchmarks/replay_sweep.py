"""Sweep cache sizes over traces and print one Markdown table per trace.

Workload: every request of each trace, against a server started for each row, over real gRPC.
Seed: 0, as everywhere in ``inferencecache replay``. Budget: with 8 replicas of 1,000 blocks or
more, cache-aware routing finds at least twice as many prompt tokens cached as round robin.

::

    python benchmarks/replay_sweep.py conversation_trace.jsonl synthetic_trace.jsonl
"""

import argparse
import sys
from pathlib import Path

from inferencecache.app.replay import run_replay
from inferencecache.app.replay_input import ReplayInput, load_trace
from inferencecache.settings.replay import ReplaySettings
from inferencecache.simulation import Experiment, ReplaySummary

HEADER = """\
| blocks per replica | round robin | cache-aware | gain | infinite cache | requests max/mean \
| prompt tokens max/mean | computed max/mean | lookup p50 / p99 | duration |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""


class Dots:
    """Shows on stderr that a row is being measured."""

    def started(self, target: str, *, is_own_server: bool) -> None:
        """Ignore the start."""

    def played(self, experiment: Experiment, requests: int) -> None:
        """Print a dot per thousand requests."""
        del experiment
        if requests % 1_000 == 0:
            sys.stderr.write(".")
            sys.stderr.flush()


def row(summary: ReplaySummary) -> str:
    """Return the table row of one replay."""
    aware = summary.cache_aware
    gain = aware.hit_ratio / summary.round_robin.hit_ratio
    cells = [
        f"{summary.cache_blocks:,}",
        f"{summary.round_robin.hit_ratio:.3f}",
        f"**{aware.hit_ratio:.3f}**",
        f"{gain:.1f} x",
        f"{summary.infinite.hit_ratio:.3f}",
        f"{aware.requests_max_over_mean:.2f}",
        f"{aware.prompt_tokens_max_over_mean:.2f}",
        f"{aware.computed_tokens_max_over_mean:.2f}",
        f"{summary.lookup.p50_us / 1_000:.2f} / {summary.lookup.p99_us / 1_000:.2f} ms",
        f"{summary.duration_s:.0f} s",
    ]
    return f"| {' | '.join(cells)} |"


def sweep(trace: ReplayInput, sizes: list[int], replicas: int) -> None:
    """Print the table of one trace."""
    print(f"\n{trace.name}, {len(trace.prompts):,} requests, {replicas} replicas\n\n{HEADER}")
    for cache_blocks in sizes:
        settings = ReplaySettings(replicas=replicas, cache_blocks=cache_blocks)
        print(row(run_replay(trace, settings, Dots())), flush=True)


def main() -> None:
    """Read the arguments and sweep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("traces", nargs="*", type=Path, help="trace files; none: the shipped one")
    parser.add_argument("--cache-blocks", nargs="+", type=int, default=[500, 1_000, 2_000, 4_000])
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--limit", type=int, default=0)
    options = parser.parse_args()
    for path in options.traces or [None]:
        sweep(load_trace(path, options.limit), options.cache_blocks, options.replicas)


if __name__ == "__main__":
    main()
