"""Run a simulation for the terminal: progress on stderr, the result on stdout."""

import json
import sys
from typing import Final

from rich.console import Console

from inferencecache.app.simulate import chosen_strategies, run_simulation
from inferencecache.app.simulate_input import simulate_input
from inferencecache.cli.plot_path import check_plot_path, drawn
from inferencecache.cli.replay_output import Output
from inferencecache.cli.simulate_progress import SimulateProgress
from inferencecache.cli.simulate_table import print_simulation
from inferencecache.settings.simulate import SimulateCommandSettings
from inferencecache.simulation import SimulationSummary

DONE: Final = 0
OUTPUT_LOST: Final = 1
"""Exit code when stdout takes no more."""


def run(output: Output, settings: SimulateCommandSettings) -> int:
    """Play the workload and show the result.

    Args:
        output: Input file and form of the result.
        settings: The simulation.

    Returns:
        0, or 1 when the result could not be written.

    Raises:
        ConfigError: The trace, a setting or the plot's path is wrong.
    """
    if output.plot is not None:
        check_plot_path(output.plot)
    chosen_strategies(settings.simulate.strategies)
    workload = simulate_input(output.trace, settings)
    with SimulateProgress(Console(stderr=True), len(workload.requests)) as progress:
        summary = run_simulation(workload, settings, progress)
    try:
        _print(summary, as_json=output.as_json)
    except OSError as error:
        message = f"cannot write the result: {error.strerror}"
        sys.stderr.write(f"inferencecache: error: {message}\n")
        return OUTPUT_LOST
    if output.plot is not None:
        from inferencecache.app.simulate_plot import draw_simulation

        with drawn(output.plot):
            draw_simulation(summary, output.plot)
    return DONE


def _print(summary: SimulationSummary, *, as_json: bool) -> None:
    """Write the result to stdout."""
    if as_json:
        sys.stdout.write(json.dumps(summary.as_json_object(), allow_nan=False) + "\n")
    else:
        print_simulation(summary, Console())
    sys.stdout.flush()
