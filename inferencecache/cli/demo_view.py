"""A demo on the terminal: a table that moves, or plain lines where nothing can move."""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Final, Self

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from inferencecache.app.demo_fleet import DemoFleet
from inferencecache.app.demo_standing import DemoStanding, EngineStanding

_PLAIN_EVERY_S: Final = 1.0
_COUNTS: Final = ("in work", "made up", "cached", "full", "messages", "behind", "restarts")


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
        """Say what runs where, and what to do with it."""
        for text in greeting(fleet):
            self._say(text)

    def told(self, news: str) -> None:
        """Say what has happened."""
        self._say(news)

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


def greeting(fleet: DemoFleet) -> Iterator[str]:
    """Yield what runs where, and what to do with it."""
    yield (
        f"server: gRPC {fleet.server.grpc_target}, metrics {fleet.server.http_url}/metrics, "
        f"decisions {fleet.server.control_url}/debug/decisions; "
        "loopback only, authentication is off"
    )
    answers = {name: address for address, name in fleet.addresses.items()}
    for name, engine in zip(fleet.replica_ids, fleet.engines, strict=True):
        yield (
            f"{name}: {engine.layout.name}, requests http://{answers[name]}/v1, "
            f"events {engine.endpoints[0]}, replay {engine.replay_endpoints[0]}, "
            f"metrics {engine.metrics_url}"
        )
    yield f"provider: http://{fleet.provider.address}/v1"
    yield f"gateway: {fleet.gateway.url}/v1"
    files, kill = fleet.files.directory, f"{fleet.engine_control.url}/engines"
    yield f"files: {files}"
    yield "send two prompts that begin alike, in another terminal:"
    for name in ("first.json", "second.json"):
        yield f"  curl {fleet.gateway.url}/v1/chat/completions -d @{files}/{name}"
    yield f"send one that only the provider serves; its key is in {files}/secrets:"
    yield f"  curl {fleet.gateway.url}/v1/chat/completions -d @{files}/hosted.json"
    yield "kill an engine; it comes back by itself:"
    yield f"  curl -X POST {kill}/{fleet.replica_ids[0]}/kill"


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
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    for heading in ("engine", "state"):
        table.add_column(heading, no_wrap=True)
    for heading in _COUNTS:
        table.add_column(heading, justify="right", no_wrap=True)
    for one in standing.engines:
        table.add_row(
            one.name,
            _state(standing, one),
            f"{one.running:,}+{one.waiting:,}",
            f"{one.requests:,}",
            f"{one.hit_ratio:.1%}",
            f"{one.usage_ratio:.0%}",
            f"{one.messages:,}",
            f"{one.behind:,}",
            f"{one.restarts:,}",
        )
    return table


def _state(standing: DemoStanding, one: EngineStanding) -> str:
    if one.is_down:
        return "down"
    is_left_alone = any(name.split("/")[-1] == one.name for name in standing.suppressed_s)
    return "left alone" if is_left_alone else "up"


def _left(suppressed_s: Mapping[str, float]) -> Iterator[str]:
    """Yield who is left alone, and for how long."""
    for name, left_s in suppressed_s.items():
        yield f"{name} for {left_s:.1f} s" if left_s else f"{name} until a request tries it"


def _totals(standing: DemoStanding) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    codes = ", ".join(f"{name} {count:,}" for name, count in standing.reason_codes.items())
    provider = standing.provider
    table.add_row("provider", f"{provider.answered:,} answered, {provider.refused:,} refused")
    if standing.suppressed_s:
        table.add_row("left alone", ", ".join(_left(standing.suppressed_s)))
    table.add_row("made up", f"{standing.requests:,} prompts in {standing.elapsed_s:.1f} s")
    table.add_row("tokens cached", _ratios(standing))
    table.add_row("lookups", codes or "none")
    if codes:
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
