"""What one eviction costs both ends, and how much of that is gRPC's own.

Workload: 3,000 evictions of keys that nobody holds, as many calls at a time as a subscriber makes,
to a server in a process of its own; the same number of calls of a method that does nothing. Three
rounds of each, in turn. Budget: about 15 s.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from statistics import median
from time import process_time_ns

import uvloop

from benchmarks.messages import EMPTY_SERVICE, as_bytes
from benchmarks.options import Options
from benchmarks.row import Row
from benchmarks.serving import Serving, serving
from benchmarks.workload import MODEL, TENANT
from inferencecache.settings.client import ClientSettings
from inferencecache.settings.delivery import DeliverySettings
from inferencecache.transport.client_channel import open_async_channel
from inferencecache.transport.client_values import Removal, ReplicaRef
from inferencecache.transport.delivery_evictions import EvictionPool

_ROUNDS = 3
_ENTRIES_MAX = 1_000_000
_NS_PER_US = 1_000


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU time per call, in microseconds, at both ends."""

    producer_us: float
    server_us: float


def rows(options: Options) -> Iterator[Row]:
    """Yield the cost at the producer and at the server."""
    calls = 500 if options.quick else 3_000
    with serving(_ENTRIES_MAX) as server:
        evictions, empty = uvloop.run(_measure(server, calls))
    for end in ("producer", "server"):
        field = f"{end}_us"
        yield Row(
            what=f"an eviction: CPU of the {end}",
            unit="us",
            value=median(getattr(cost, field) for cost in evictions),
            note=f"a call that does nothing: {median(getattr(cost, field) for cost in empty):.0f}",
        )


async def _measure(server: Serving, calls: int) -> tuple[list[Cost], list[Cost]]:
    client, delivery = ClientSettings(), DeliverySettings()
    replica = ReplicaRef(TENANT, MODEL, "engine-0")
    evictions: list[Cost] = []
    empty: list[Cost] = []
    channel = open_async_channel(server.target, client, None)
    pool = EvictionPool(channel, server.target, client, delivery)
    call = channel.unary_unary(f"/{EMPTY_SERVICE}/Call", as_bytes, as_bytes)

    async def evict() -> None:
        first = len(evictions) * calls
        pool.add(
            Removal(replica, number.to_bytes(8, "big")) for number in range(first, first + calls)
        )
        await pool.until_at_most(0)

    async def call_empty() -> None:
        numbers = iter(range(calls))

        async def work() -> None:
            for _ in numbers:
                await call(b"")

        await asyncio.gather(*(work() for _ in range(delivery.evictions_in_flight_max)))

    try:
        await channel.channel_ready()
        for _ in range(_ROUNDS):
            evictions.append(await _cost_of(evict, server, calls))
            empty.append(await _cost_of(call_empty, server, calls))
    finally:
        await channel.close()
    return evictions, empty


async def _cost_of(work: Callable[[], Awaitable[None]], server: Serving, calls: int) -> Cost:
    before = process_time_ns(), server.cpu_ns()
    await work()
    own_ns, its_ns = process_time_ns() - before[0], server.cpu_ns() - before[1]
    return Cost(own_ns / calls / _NS_PER_US, its_ns / calls / _NS_PER_US)
