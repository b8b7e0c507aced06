"""The whole server under load, over gRPC, with clients in other processes.

Workload: an index filled to its cap of 1 M blocks with chains of 512 from eight replicas; lookups
of 512-block chains that are held. Throughput: 16 lookups under way. Latency: 500 lookups a second,
counted from when each was due; alone, and while 50 k new blocks a second come in at the cap, one
entry per block, so that as many are evicted, plus 500 PREFIX_EVICTED a second. Seed:
``workload.SEED``. Budget: 10 s per phase.

Server and clients share the machine's cores. What is the server's own shows beside the latencies:
the processor time of the longest step of its handlers, and how long it waited for a core. What the
library and the machine need by themselves shows in the same calls, same bytes, to handlers that do
nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import Any

from benchmarks.measure import NS_PER_S
from benchmarks.options import Options
from benchmarks.row import Bound, Row
from benchmarks.serving import Client, Serving, serving
from benchmarks.step_trace import LONG_MS
from benchmarks.workload import CHAIN_BLOCKS

LOOKUPS_PER_S = 500
BLOCKS_PER_S = 50_000
EVENTS_PER_S = 500
_PREPARE_S = 60
_HEAD_START_S = 0.5


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the gateway, the producer if there was one, and the kernel saw of one phase."""

    gateway: dict[str, Any]
    producer: dict[str, Any]
    use: str


class _Use:
    """What a server takes of the machine from now on."""

    def __init__(self, server: Serving) -> None:
        self._server = server
        self._began = self._seen()

    def note(self) -> str:
        """Return it in words."""
        elapsed_s, cpu_s, waited_s = (
            now - began for now, began in zip(self._seen(), self._began, strict=True)
        )
        return (
            f"the server used {cpu_s / elapsed_s:.0%} of a core and waited {waited_s:.2f} s for one"
        )

    def _seen(self) -> tuple[float, float, float]:
        server = self._server
        return perf_counter(), server.cpu_ns() / NS_PER_S, server.waited_ns() / NS_PER_S


def run(options: Options) -> Iterator[Row]:
    """Yield throughput and latency with and without ingest."""
    count = options.blocks_max // CHAIN_BLOCKS
    with serving(count * CHAIN_BLOCKS, "--steps") as server:
        filler = Client("load_producer", server.target, "--fill", count)
        filler.wait_ready()
        filler.go()
        filled = filler.result(_PREPARE_S)
        resident_mb = server.resident_bytes() / 2**20
        yield Row(
            what="filling over gRPC, one stream, chain entries",
            unit="blocks/s",
            value=filled["blocks_per_s"],
            note=f"server RSS afterwards {resident_mb:.0f} MiB",
        )
        for shape in ("", "entries"):
            yield from _phase(options, server, count, shape)
        yield from _empty_phase(options, server, count)


def _phase(options: Options, server: Serving, count: int, shape: str) -> Iterator[Row]:
    with_what = f", with {BLOCKS_PER_S // 1_000} k blocks/s and {EVENTS_PER_S} evictions/s"
    name = with_what if shape else ", no ingest"
    server.steps()
    seen = _load(options, server, count, shape, LOOKUPS_PER_S)
    steps = server.steps()
    yield Row(
        what=f"LookupRoute p99 at {LOOKUPS_PER_S}/s{name}",
        unit="ms",
        value=seen.gateway["p99_ms"],
        bound=Bound.AT_MOST,
        target=10 if shape else None,
        note=_note(seen),
    )
    yield Row(
        what=f"... the server's longest step{name}",
        unit="ms",
        value=max(each["longest_ms"] for each in steps.values()),
        note=_steps_note(steps),
    )
    busy = _load(options, server, count, shape, 0)
    yield Row(
        what=f"LookupRoute throughput, 16 under way{name}",
        unit="1/s",
        value=busy.gateway["per_s"],
        note=_note(busy),
    )


def _empty_phase(options: Options, server: Serving, count: int) -> Iterator[Row]:
    """Yield the latency of calls that do nothing, beside as many messages that nobody reads."""
    seen = _load(options, server, count, "entries", LOOKUPS_PER_S, "--empty")
    yield Row(
        what="... the same calls to handlers that do nothing: p99",
        unit="ms",
        value=seen.gateway["p99_ms"],
        note=_note(seen),
    )


def _load(
    options: Options, server: Serving, count: int, shape: str, rate: int, *flags: str
) -> _Seen:
    """Return what was seen; the producer outlasts the gateway, and use counts until its end."""
    seconds = options.load_s
    paced = ("--chains", count, "--seconds", seconds)
    gateway = Client("load_gateway", server.target, *paced, "--rate", rate, *flags)
    clients = [gateway]
    if shape:
        arguments = ("--chains", count, "--seconds", seconds + 2, "--blocks-per-s", BLOCKS_PER_S)
        more = ("--events-per-s", EVENTS_PER_S, "--shape", shape, *flags)
        clients.append(Client("load_producer", server.target, *arguments, *more))
    for client in clients:
        client.wait_ready()
    use = _Use(server)
    for client in reversed(clients):
        client.go()
        sleep(_HEAD_START_S)
    results = [client.result(3 * seconds + _PREPARE_S) for client in clients]
    return _Seen(results[0], results[1] if shape else {}, use.note())


def _steps_note(steps: dict[str, dict[str, float]]) -> str:
    return "; ".join(
        f"{name}: {seen['steps']:.0f} steps, longest {seen['longest_ms']:.2f} ms, "
        f"{seen['long']:.0f} over {LONG_MS} ms"
        for name, seen in sorted(steps.items())
    )


def _note(phase: _Seen) -> str:
    seen, produced = phase.gateway, phase.producer
    parts = [
        f"p50 {seen['p50_ms']:.2f}, p99 {seen['p99_ms']:.2f}, max {seen['max_ms']:.2f} ms",
        f"{seen['per_s']:.0f}/s",
        ", ".join(f"{code} {count}" for code, count in seen["codes"].items()),
    ]
    if produced:
        parts.append(
            f"ingested {produced['blocks_per_s']:,.0f} blocks/s, "
            f"{produced['events_per_s']:.0f} events/s, {produced['errors']} failed"
        )
    return "; ".join([*parts, phase.use])
