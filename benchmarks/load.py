"""The whole server under load, over gRPC, with clients in other processes.

Workload: an index filled to its cap of 1 M blocks with chains of 512 from eight replicas; lookups
of 512-block chains that are held. Throughput: 16 lookups under way. Latency: 500 lookups a second,
counted from when each was due; alone, and while 50 k new blocks a second come in at the cap, one
entry per block, so that as many are evicted, plus 500 PREFIX_EVICTED a second. Seed:
``workload.SEED``. Budget: 10 s per phase.

Server and clients share the machine's cores. What is the server's own shows beside the latencies:
the processor time of the longest step of its handlers, and how long it waited for a core.
"""

from collections.abc import Iterator
from time import sleep
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


def _phase(options: Options, server: Serving, count: int, shape: str) -> Iterator[Row]:
    with_what = f", with {BLOCKS_PER_S // 1_000} k blocks/s and {EVENTS_PER_S} evictions/s"
    name = with_what if shape else ", no ingest"
    server.steps()
    waited_ns = server.waited_ns()
    paced, produced = _load(options, server, count, shape, LOOKUPS_PER_S)
    steps, waited_s = server.steps(), (server.waited_ns() - waited_ns) / NS_PER_S
    yield Row(
        what=f"LookupRoute p99 at {LOOKUPS_PER_S}/s{name}",
        unit="ms",
        value=paced["p99_ms"],
        bound=Bound.AT_MOST,
        target=10 if shape else None,
        note=f"{_note(paced, produced)}; the server waited {waited_s:.2f} s for a core",
    )
    yield Row(
        what=f"... the server's longest step{name}",
        unit="ms",
        value=max(seen["longest_ms"] for seen in steps.values()),
        note=_steps_note(steps),
    )
    busy, produced = _load(options, server, count, shape, 0)
    yield Row(
        what=f"LookupRoute throughput, 16 under way{name}",
        unit="1/s",
        value=busy["per_s"],
        note=_note(busy, produced),
    )


def _load(
    options: Options, server: Serving, count: int, shape: str, rate: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the gateway and the producer saw; the producer outlasts the gateway."""
    seconds = options.load_s
    gateway = Client(
        "load_gateway", server.target, "--chains", count, "--seconds", seconds, "--rate", rate
    )
    clients = [gateway]
    if shape:
        arguments = ("--chains", count, "--seconds", seconds + 2, "--blocks-per-s", BLOCKS_PER_S)
        more = ("--events-per-s", EVENTS_PER_S, "--shape", shape)
        clients.append(Client("load_producer", server.target, *arguments, *more))
    for client in clients:
        client.wait_ready()
    for client in reversed(clients):
        client.go()
        sleep(_HEAD_START_S)
    results = [client.result(3 * seconds + _PREPARE_S) for client in clients]
    return results[0], results[1] if shape else {}


def _steps_note(steps: dict[str, dict[str, float]]) -> str:
    return "; ".join(
        f"{name}: {seen['steps']:.0f} steps, longest {seen['longest_ms']:.2f} ms, "
        f"{seen['long']:.0f} over {LONG_MS} ms"
        for name, seen in sorted(steps.items())
    )


def _note(seen: dict[str, Any], produced: dict[str, Any]) -> str:
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
    return "; ".join(parts)
