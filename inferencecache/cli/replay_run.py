"""Run a replay for the terminal: progress and notices on stderr, the result on stdout."""

import json
import sys
from typing import Final

from rich.console import Console

from inferencecache.app.reach import ServerAbsentError
from inferencecache.app.replay import run_replay
from inferencecache.app.replay_input import load_trace
from inferencecache.app.replay_plane import ServerLostError
from inferencecache.cli.plot_path import check_plot_path, drawn
from inferencecache.cli.replay_output import Output
from inferencecache.cli.replay_progress import ReplayProgress
from inferencecache.cli.replay_table import print_summary
from inferencecache.settings.replay import ReplaySettings
from inferencecache.simulation import ReplaySummary

DONE: Final = 0
OUTPUT_LOST: Final = 1
"""Exit code when stdout takes no more."""
SERVER_ABSENT: Final = 2
"""Exit code when no server has ever answered at the address given, which is thus wrong."""
SERVER_LOST: Final = 3
"""Exit code when the server goes away."""

_ADVICE: Final = "`inferencecache serve` runs one; without --server the replay starts its own"


def run(output: Output, settings: ReplaySettings) -> int:
    """Play the trace and show the result.

    Args:
        output: Input file and form of the result.
        settings: The replay.

    Returns:
        0, or 2 when there is no server, or 3 when it was lost, or 1 when the result could not be
        written.

    Raises:
        ConfigError: The trace, a setting or the plot's path is wrong.
    """
    if output.plot is not None:
        check_plot_path(output.plot)
    trace = load_trace(output.trace, settings.requests_max, for_engines=settings.through_zmq)
    try:
        with ReplayProgress(Console(stderr=True), len(trace.prompts)) as progress:
            summary = run_replay(trace, settings, progress)
    except ServerAbsentError as error:
        return _fail(f"{error} ({_ADVICE})", SERVER_ABSENT)
    except ServerLostError as error:
        return _fail(str(error), SERVER_LOST)
    try:
        _print(summary, as_json=output.as_json)
    except OSError as error:
        return _fail(f"cannot write the result: {error.strerror}", OUTPUT_LOST)
    if output.plot is not None:
        from inferencecache.app.replay_plot import draw_plot

        with drawn(output.plot):
            draw_plot(summary, output.plot)
    return DONE


def _fail(message: str, code: int) -> int:
    """Write one line to stderr and return *code*."""
    sys.stderr.write(f"inferencecache: error: {message}\n")
    return code


def _print(summary: ReplaySummary, *, as_json: bool) -> None:
    """Write the result to stdout."""
    if as_json:
        sys.stdout.write(json.dumps(summary.as_json_object(), allow_nan=False) + "\n")
    else:
        print_summary(summary, Console())
    sys.stdout.flush()
