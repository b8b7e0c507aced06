"""A client process in the role of the engines: fills the index, then reports and evicts at a rate.

Every update is one new chain of 512 blocks, as one entry per block or as one chain entry; messages
are made before the clock starts. Prints what was sent as JSON.
"""

import argparse
import asyncio
import gc
import json
from collections.abc import AsyncIterator
from time import perf_counter

import grpc
import uvloop

from benchmarks.messages import (
    PUBLISH_EVENT,
    REPORT_CACHE_STATE,
    chain_bytes,
    entries_bytes,
    evicted_bytes,
)
from benchmarks.starting_line import wait_for_go
from benchmarks.workload import CHAIN_BLOCKS, SEED, chains

REPLICAS = 8


async def fill(channel: grpc.aio.Channel, count: int) -> dict[str, object]:
    """Report *count* chains as fast as they are taken."""
    wait_for_go()
    started = perf_counter()

    async def updates() -> AsyncIterator[bytes]:
        for number, chain in enumerate(chains(count)):
            yield chain_bytes(f"replica-{number % REPLICAS}", chain)

    await channel.stream_unary(REPORT_CACHE_STATE)(updates())
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
    started = perf_counter()

    async def paced() -> AsyncIterator[bytes]:
        for number, update in enumerate(updates):
            await asyncio.sleep(max(0.0, started + number / updates_per_s - perf_counter()))
            yield update

    _, failed = await asyncio.gather(
        channel.stream_unary(REPORT_CACHE_STATE)(paced()),
        _publish(channel, events, len(events) / arguments.seconds, started + 0.1),
    )
    elapsed_s = perf_counter() - started
    return {
        "blocks_per_s": count * CHAIN_BLOCKS / elapsed_s,
        "events_per_s": len(events) / elapsed_s,
        "errors": failed,
    }


async def _publish(
    channel: grpc.aio.Channel, events: list[bytes], rate: float, started: float
) -> int:
    """Send each event when it is due; return how many failed."""
    call = channel.unary_unary(PUBLISH_EVENT)
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
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--blocks-per-s", type=float, default=50_000)
    parser.add_argument("--events-per-s", type=float, default=500)
    parser.add_argument("--shape", choices=("entries", "chain"), default="entries")
    print(json.dumps(uvloop.run(run(parser.parse_args()))))


if __name__ == "__main__":
    main()
