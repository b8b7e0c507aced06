"""The picker: cost and time of a Pick, throughput of bodies, memory in flight and after it.

What a Pick costs is processor time of the server above that of a call that does nothing, made to
the same server in turn: what gRPC takes is no part of it, and is told beside it. How each kind of
Pick is made is in ``picker_made``.
"""

import asyncio
from collections.abc import Iterator
from time import perf_counter

import grpc

from benchmarks import picker_cpu, picker_rpc
from benchmarks.measure import NS_PER_MS
from benchmarks.options import Options
from benchmarks.picker_client import (
    ABANDON_POINTS,
    Gateway,
    at_once,
    body_of,
    messages_of,
)
from benchmarks.picker_director import director_row
from benchmarks.row import Bound, Row
from benchmarks.serving import Serving, serving_command

MIB = 1_048_576
GIB = 1_024 * MIB

_UNBOUND = [("grpc.max_receive_message_length", -1)]
_AT_ONCE = 8
_QUIET_S = 5.0


def run(options: Options) -> Iterator[Row]:
    """Yield the rows."""
    yield director_row(options)
    yield from picker_rpc.rows(options)
    yield from picker_cpu.rows(options)
    with serving_command("benchmarks.picker_server", "plugged", "60000") as server:
        yield asyncio.run(_throughput(server, 100 if options.quick else 400))
    with serving_command("benchmarks.picker_server", "plugged", "60000") as server:
        yield from asyncio.run(_in_flight(server, 200 if options.quick else 1_000))
    with serving_command("benchmarks.picker_server", "plugged", "2000") as server:
        yield asyncio.run(_abandoned(server, 5_000 if options.quick else 50_000))


async def _throughput(server: Serving, count: int) -> Row:
    async with grpc.aio.insecure_channel(server.target, options=_UNBOUND) as channel:
        gateway, body = Gateway(channel), messages_of(body_of(MIB))
        await at_once(_AT_ONCE, [gateway.whole(body) for _ in range(_AT_ONCE)])
        cpu_ns, started = server.cpu_ns(), perf_counter()
        await at_once(_AT_ONCE, [gateway.whole(body) for _ in range(count)])
        took_s = perf_counter() - started
        cpu_ms = (server.cpu_ns() - cpu_ns) / count / NS_PER_MS
    return Row(
        what=f"push + pick + pull of 1 MiB, {_AT_ONCE} at once",
        unit="MiB/s",
        value=count / took_s,
        bound=Bound.AT_LEAST,
        target=100,
        note=f"{cpu_ms:.2f} ms CPU of the server each",
    )


async def _in_flight(server: Serving, count: int) -> Iterator[Row]:
    async with grpc.aio.insecure_channel(server.target, options=_UNBOUND) as channel:
        gateway, body = Gateway(channel), messages_of(body_of(MIB))
        await at_once(_AT_ONCE, [gateway.whole(body) for _ in range(_AT_ONCE)])
        before = server.resident_bytes()
        ids: list[int] = []

        async def push() -> None:
            ids.append(await gateway.push(body))

        await at_once(_AT_ONCE, [push() for _ in range(count)])
        grown = server.resident_bytes() - before

        async def finish(stream_id: int) -> None:
            await gateway.pull(await gateway.pick(stream_id))

        await at_once(_AT_ONCE, [finish(stream_id) for stream_id in ids])
        await asyncio.sleep(_QUIET_S)
        left = server.resident_bytes() - before
    return iter(
        (
            Row(
                what=f"{count} bodies of 1 MiB in flight, resident memory",
                unit="GiB",
                value=grown / GIB,
                bound=Bound.AT_MOST,
                target=1.1 * count / 1_000,
            ),
            Row(
                what="the same, left when they are gone",
                unit="GiB",
                value=left / GIB,
                bound=Bound.AT_MOST,
                target=0.1,
            ),
        )
    )


async def _abandoned(server: Serving, count: int) -> Row:
    async with grpc.aio.insecure_channel(server.target) as channel:
        gateway, body = Gateway(channel), messages_of(body_of(16_384))
        warm = count // 5
        await at_once(
            50, [gateway.abandon(body, number % ABANDON_POINTS) for number in range(warm)]
        )
        await asyncio.sleep(_QUIET_S)
        before = server.resident_bytes()
        await at_once(
            50, [gateway.abandon(body, number % ABANDON_POINTS) for number in range(count)]
        )
        await asyncio.sleep(_QUIET_S)
        grown = server.resident_bytes() - before
    return Row(
        what=f"{count} abandoned requests, resident memory",
        unit="MiB",
        value=grown / MIB,
        bound=Bound.AT_MOST,
        target=16,
    )
