"""The result of a simulation as tables."""

from rich import box
from rich.console import Console
from rich.table import Table

from inferencecache.cli.whole_table import print_whole, titled
from inferencecache.simulation import SimulationSummary, StrategyOutcome

_HEADINGS = ("TTFT p50", "p95", "p99", "hit ratio", "requests*", "work*")


def print_simulation(summary: SimulationSummary, console: Console) -> None:
    """Print the comparison, and everything that its numbers depend on.

    Args:
        summary: What to print.
        console: Where.
    """
    print_whole(strategy_table(summary), console)
    seconds = sum(outcome.duration_s for outcome in summary.strategies)
    console.print(f"simulated in {seconds:.1f} s, with\n", highlight=False)
    parameters = ", ".join(f"{name} {value}" for name, value in summary.parameters.items())
    console.print(parameters, highlight=False, markup=False, style="dim")


def strategy_table(summary: SimulationSummary) -> Table:
    """Return one row per strategy."""
    parameters = summary.parameters
    title = titled(
        f"{summary.workload}: {parameters['requests']} requests, {parameters['engines']} engines"
    )
    table = Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,  # or times of minutes would be wider than a terminal
        pad_edge=False,
    )
    table.add_column("", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for outcome in summary.strategies:
        table.add_row(outcome.name, *_cells(outcome))
    table.caption = (
        "TTFT in milliseconds\n"
        "* busiest engine, as a multiple of the mean; work is what it had to compute"
    )
    table.caption_justify = "left"
    return table


def _cells(outcome: StrategyOutcome) -> tuple[str, ...]:
    return (
        f"{outcome.ttft_p50_ms:,.0f}",
        f"{outcome.ttft_p95_ms:,.0f}",
        f"{outcome.ttft_p99_ms:,.0f}",
        f"{outcome.hit_ratio:.3f}",
        f"{outcome.requests_max_over_mean:.2f}",
        f"{outcome.work_max_over_mean:.2f}",
    )
