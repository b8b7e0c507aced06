"""A client process in the role of the engines: fills the index, then reports and evicts at a rate.

Every update is one new chain of 512 blocks, as one entry per block or as one chain entry; messages
are made before the clock starts. The chains that the gateway looks up are reported again three
times per turnover of the index, or they would be evicted as its oldest. With ``--empty`` the same
bytes go to handlers that do nothing. Prints what was sent, as JSON.
"""

import argparse
import asyncio
import gc
import json
import math
from collections.abc import AsyncIterator, Iterator
from time import perf_counter

import grpc
import uvloop

from benchmarks.messages import (
    EMPTY_CALL,
    EMPTY_STREAM,
    PUBLISH_EVENT,
    REPORT_CACHE_STATE,
    as_bytes,
    chain_bytes,
    entries_bytes,
    evicted_bytes,
)
from benchmarks.starting_line import wait_for_go
from benchmarks.workload import CHAIN_BLOCKS, LOOKED_UP, SEED, chains

UnaryCall = grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
REPLICAS = 8
_REFRESHES_PER_TURNOVER = 3


async def fill(channel: grpc.aio.Channel, count: int) -> dict[str, object]:
    """Report *count* chains as fast as they are taken."""
    wait_for_go()
    started = perf_counter()

    async def updates() -> AsyncIterator[bytes]:
        for number, chain in enumerate(chains(count)):
            yield chain_bytes(f"replica-{number % REPLICAS}", chain)

    await channel.stream_unary(REPORT_CACHE_STATE, as_bytes, as_bytes)(updates())
    return {"blocks_per_s": count * CHAIN_BLOCKS / (perf_counter() - started)}


async def churn(channel: grpc.aio.Channel, arguments: argparse.Namespace) -> dict[str, object]:
    """Report new chains and evict tails of them, each at its rate."""
    make = chain_bytes if arguments.shape == "chain" else entries_bytes
    updates_per_s = arguments.blocks_per_s / CHAIN_BLOCKS
    count = int(updates_per_s * arguments.seconds)
    fresh = list(chains(count, seed=SEED + 6))
    updates = [make(f"replica-{number % REPLICAS}", chain) for number, chain in enumerate(fresh)]
    events = [
        evicted_bytes(f"replica-{number % REPLICAS}", chain[-1 - turn])
        for number, chain in enumerate(fresh)
        for turn in range(round(arguments.events_per_s / updates_per_s))
    ]
    gc.freeze()
    wait_for_go()
    schedule = sorted([*_evenly(updates, updates_per_s), *_refreshes(arguments)])
    started = perf_counter()

    async def paced() -> AsyncIterator[bytes]:
        for due_s, update in schedule:
            await asyncio.sleep(max(0.0, started + due_s - perf_counter()))
            yield update

    report, publish = _methods(arguments)
    event = channel.unary_unary(publish, as_bytes, as_bytes)
    _, failed = await asyncio.gather(
        channel.stream_unary(report, as_bytes, as_bytes)(paced()),
        _publish(event, events, len(events) / arguments.seconds, started + 0.1),
    )
    elapsed_s = perf_counter() - started
    return {
        "blocks_per_s": count * CHAIN_BLOCKS / elapsed_s,
        "events_per_s": len(events) / elapsed_s,
        "errors": failed,
    }


def _methods(arguments: argparse.Namespace) -> tuple[str, str]:
    """Return what takes updates and what takes events."""
    return (EMPTY_STREAM, EMPTY_CALL) if arguments.empty else (REPORT_CACHE_STATE, PUBLISH_EVENT)


def _evenly(updates: list[bytes], rate: float) -> Iterator[tuple[float, bytes]]:
    """Yield each update with the second at which it is due."""
    for number, update in enumerate(updates):
        yield number / rate, update


def _refreshes(arguments: argparse.Namespace) -> Iterator[tuple[float, bytes]]:
    """Yield reports that keep the chains under lookup from becoming the oldest ones."""
    held = list(enumerate(chains(arguments.chains)))[-LOOKED_UP:]
    updates = [chain_bytes(f"replica-{number % REPLICAS}", chain) for number, chain in held]
    turnover_s = arguments.chains * CHAIN_BLOCKS / arguments.blocks_per_s
    rounds = math.ceil(arguments.seconds * _REFRESHES_PER_TURNOVER / turnover_s)
    return _evenly(updates * rounds, len(updates) * rounds / arguments.seconds)


async def _publish(call: UnaryCall, events: list[bytes], rate: float, started: float) -> int:
    """Send each event when it is due; return how many failed."""
    pending = []
    for number, event in enumerate(events):
        await asyncio.sleep(max(0.0, started + number / rate - perf_counter()))
        pending.append(asyncio.ensure_future(_outcome(call(event))))
    return sum(await asyncio.gather(*pending))


async def _outcome(call: grpc.aio.UnaryUnaryCall[bytes, bytes]) -> int:
    try:
        await call
    except grpc.aio.AioRpcError:
        return 1
    return 0


async def run(arguments: argparse.Namespace) -> dict[str, object]:
    """Do what was asked."""
    async with grpc.aio.insecure_channel(arguments.target) as channel:
        if arguments.fill:
            return await fill(channel, arguments.fill)
        return await churn(channel, arguments)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--fill", type=int, default=0, help="only report this many chains")
    parser.add_argument("--chains", type=int, default=0, help="chains in the index")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--blocks-per-s", type=float, default=50_000)
    parser.add_argument("--events-per-s", type=float, default=500)
    parser.add_argument("--empty", action="store_true", help="call handlers that do nothing")
    parser.add_argument("--shape", choices=("entries", "chain"), default="entries")
    print(json.dumps(uvloop.run(run(parser.parse_args()))))


if __name__ == "__main__":
    main()
