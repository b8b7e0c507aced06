"""A demo on the terminal: a table that moves, or plain lines where nothing can move."""

from types import TracebackType
from typing import Final, Self

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from inferencecache.app.demo_fleet import DemoFleet
from inferencecache.app.demo_standing import DemoStanding

_PLAIN_EVERY_S: Final = 1.0


class DemoView:
    """Shows a demo while it runs.

    Args:
        console: Where to draw.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._plain_after_s = 0.0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def started(self, fleet: DemoFleet) -> None:
        """Say what runs where."""
        self._say(
            f"server: gRPC {fleet.server.grpc_target}, metrics {fleet.server.http_url}/metrics; "
            "loopback only, authentication is off"
        )
        for name, engine in zip(fleet.replica_ids, fleet.engines, strict=True):
            self._say(
                f"{name}: {engine.layout.name}, events {engine.endpoints[0]}, "
                f"replay {engine.replay_endpoints[0]}, metrics {engine.metrics_url}"
            )

    def played(self, standing: DemoStanding) -> None:
        """Show how it stands."""
        if self._console.is_terminal:
            self._live.update(picture(standing), refresh=True)
        elif standing.elapsed_s >= self._plain_after_s:
            self._plain_after_s = standing.elapsed_s + _PLAIN_EVERY_S
            self._say(line(standing))

    def ended(self, standing: DemoStanding) -> None:
        """Show the summary."""
        self._console.print(picture(standing))
        self._say(verdict(standing))

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


def line(standing: DemoStanding) -> str:
    """Return how it stands in one line."""
    engines = ", ".join(
        f"{one.name} {one.requests} requests {one.usage_ratio:.0%} full" for one in standing.engines
    )
    return (
        f"{standing.elapsed_s:6.1f} s  {standing.requests} requests  "
        f"cached: cache-aware {standing.hit_ratio:.1%}, "
        f"round robin {standing.round_robin_hit_ratio:.1%}  "
        f"index {standing.entries} entries  {engines}"
    )


def picture(standing: DemoStanding) -> Group:
    """Return how it stands as tables."""
    return Group(_engines(standing), _totals(standing))


def verdict(standing: DemoStanding) -> str:
    """Return whether index and engines agree."""
    if standing.differences is None:
        return "the index did not catch up with the engines in time"
    if standing.differences:
        return f"index and engines DISAGREE about {standing.differences} keys"
    return f"index and engines agree about all {standing.entries} keys"


def _engines(standing: DemoStanding) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in ("engine", "layout"):
        table.add_column(heading, no_wrap=True)
    for heading in ("requests", "cached", "full", "messages", "behind", "restarts"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in standing.engines:
        table.add_row(
            one.name,
            one.layout,
            f"{one.requests:,}",
            f"{one.hit_ratio:.1%}",
            f"{one.usage_ratio:.0%}",
            f"{one.messages:,}",
            f"{one.behind:,}",
            f"{one.restarts:,}",
        )
    return table


def _totals(standing: DemoStanding) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    codes = ", ".join(f"{name} {count:,}" for name, count in standing.reason_codes.items())
    table.add_row("requests", f"{standing.requests:,} in {standing.elapsed_s:.1f} s")
    table.add_row("tokens cached", _ratios(standing))
    table.add_row("lookups", codes or "none")
    table.add_row(
        "lookup latency",
        f"p50 {standing.lookup_p50_ms:.2f} ms, p99 {standing.lookup_p99_ms:.2f} ms",
    )
    table.add_row("index", f"{standing.entries:,} entries")
    return table


def _ratios(standing: DemoStanding) -> Text:
    return Text.assemble(
        ("cache-aware ", ""),
        (f"{standing.hit_ratio:.1%}", "bold"),
        (f", round robin {standing.round_robin_hit_ratio:.1%}", ""),
    )
