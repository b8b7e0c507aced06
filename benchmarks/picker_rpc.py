"""What a Pick over gRPC costs and takes, with two plugins and with the prefix signal on.

Workload: bodies of 10 KB that are there already, picked one after the other; in turn with them as
many calls that do nothing, to the same server. With the signal on, the prompt is a chat whose
tokens are remembered, and 16 engines hold a quarter to all of it; it is picked again and again, so
that the picker's own memory has all of it, too. Then requests at random moments, 300 a second, each
pushed, picked and pulled; nobody reports, so that load piles up. The median of five such runs
counts, since what a machine does beside decides a single one. They come from a client that leaves
the server its core; three more from gRPC's own for Python, which does not. And three with as many
requests as this machine has in the time in which the one that the targets were set for has 300.
Budget: 240 s.
"""

from collections.abc import Awaitable, Callable, Iterator
from statistics import median
from time import perf_counter_ns, process_time_ns
from typing import Final, NamedTuple

import grpc
import uvloop

from benchmarks.machine import slowness
from benchmarks.measure import NS_PER_MS, quantile
from benchmarks.options import Options
from benchmarks.picker_client import Calls, Gateway, body_of, messages_of, paced_picks
from benchmarks.picker_made import ENGINES, ten_kb_chat
from benchmarks.picker_wire import wire_gateway
from benchmarks.row import Bound, Row
from benchmarks.serving import Serving, serving_command

BODY_BYTES: Final = 10_240
_ROUNDS: Final = 9
_PER_SECOND: Final = 300
_RUNS: Final = 5
_FURTHER_RUNS: Final = 3
_TTL_MS: Final = 60_000


class PickKind(NamedTuple):
    """A kind of Pick.

    Attributes:
        server: What ``picker_server`` calls its picker.
        what: It, in a few words.
        body: What is picked for.
        target_ms: Most processor time above an empty call.
    """

    server: str
    what: str
    body: bytes
    target_ms: float


def kinds() -> tuple[PickKind, PickKind]:
    """Return the two kinds."""
    chat = f"a 10 KB chat, tokens cached, {ENGINES} engines"
    return (
        PickKind("plugged", "a 10 KB body with two plugins", body_of(BODY_BYTES), 1.0),
        PickKind("signalled", chat, ten_kb_chat(), 1.5),
    )


def rows(options: Options) -> Iterator[Row]:
    """Yield cost and time of each kind."""
    for kind in kinds():
        with serving_command("benchmarks.picker_server", kind.server, str(_TTL_MS)) as server:
            # The loop that the server has, too: its client must leave it room on two cores.
            yield from uvloop.run(_measured(server, kind, options))


async def _measured(server: Serving, kind: PickKind, options: Options) -> list[Row]:
    async with grpc.aio.insecure_channel(server.target) as channel:
        gateway, body = Gateway(channel), messages_of(kind.body)
        await _costs(server, gateway, body, 50)
        costs = [
            await _costs(server, gateway, body, 50 if options.quick else 200)
            for _ in range(_ROUNDS)
        ]
        by_grpc = await _paced(gateway, body, _PER_SECOND, _FURTHER_RUNS, options)
    slower_per_second = round(_PER_SECOND / slowness())
    async with wire_gateway(server.target) as light:
        paced = await _paced(light, body, _PER_SECOND, _RUNS, options)
        slower = await _paced(light, body, slower_per_second, _FURTHER_RUNS, options)
    over = [pick - empty for pick, empty in costs]
    picks, empties = ([cost[at] for cost in costs] for at in range(2))
    return [
        Row(
            what=f"Pick of {kind.what}, CPU of the server over an empty call",
            unit="ms",
            value=median(over),
            bound=Bound.AT_MOST,
            target=kind.target_ms,
            note=f"{median(picks):.2f} ms with gRPC, {median(empties):.2f} ms an empty call; "
            f"least over it {min(over):.2f}",
        ),
        Row(
            what=f"Pick of {kind.what}, {_PER_SECOND}/s, p99",
            unit="ms",
            value=median(paced.p99s_ms),
            bound=Bound.AT_MOST,
            target=15,
            note=f"{paced}; each with push and pull",
        ),
        Row(
            what=f"... as gRPC's own client for Python sees it, {_PER_SECOND}/s, p99",
            unit="ms",
            value=median(by_grpc.p99s_ms),
            note=str(by_grpc),
        ),
        Row(
            what=f"... at {_PER_SECOND}/s by the clock of the targets' machine, p99",
            unit="ms",
            value=median(slower.p99s_ms),
            note=f"{slower_per_second}/s here; {slower}",
        ),
    ]


class _Paced(NamedTuple):
    """Several runs of requests at a fixed rate.

    Attributes:
        p99s_ms: Of each run.
        medians_ms: Of each run.
        client_shares: Of a core that the client took, in each run.
    """

    p99s_ms: list[float]
    medians_ms: list[float]
    client_shares: list[float]

    def __str__(self) -> str:
        """Say what every run came to."""
        runs = ", ".join(f"{p99_ms:.1f}" for p99_ms in sorted(self.p99s_ms))
        share = median(self.client_shares)
        return (
            f"runs {runs} ms; median {median(self.medians_ms):.2f} ms; client {share:.0%} of a core"
        )


async def _paced(
    calls: Calls, body: list[bytes], per_second: int, runs: int, options: Options
) -> _Paced:
    """Return what Picks take at *per_second*, run by run."""
    count, paced = 600 if options.quick else 3_000, _Paced([], [], [])
    await paced_picks(calls, body, per_second, 100)
    for _ in range(1 if options.quick else runs):
        begun_ns, worked_ns = perf_counter_ns(), process_time_ns()
        times = await paced_picks(calls, body, per_second, count)
        worked_ns = process_time_ns() - worked_ns
        paced.p99s_ms.append(quantile(times, 0.99))
        paced.medians_ms.append(quantile(times, 0.5))
        paced.client_shares.append(worked_ns / (perf_counter_ns() - begun_ns))
    return paced


async def _costs(
    server: Serving, gateway: Gateway, body: list[bytes], count: int
) -> tuple[float, float]:
    """Return the processor time of a Pick and of a call that does nothing, in ms."""
    ids = [await gateway.push(body) for _ in range(count)]
    picked = []

    async def pick() -> None:
        picked.append(await gateway.pick(ids.pop()))

    empty_ms = await _cost_ms(server, gateway.nothing, count)
    pick_ms = await _cost_ms(server, pick, count)
    for one in picked:
        await gateway.finish(one)
    return pick_ms, empty_ms


async def _cost_ms(server: Serving, call: Callable[[], Awaitable[None]], count: int) -> float:
    started_ns = server.cpu_ns()
    for _ in range(count):
        await call()
    return (server.cpu_ns() - started_ns) / count / NS_PER_MS
