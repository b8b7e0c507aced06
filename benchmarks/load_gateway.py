"""A client process that looks up chains: at a fixed rate, or as fast as the server answers.

With ``--empty`` it sends the same bytes to a handler that does nothing.

At a fixed rate, latency counts from the moment a call was due, so that a stall of the server is
paid for by every call that had to wait behind it. Prints latencies and codes as JSON.
"""

import argparse
import asyncio
import gc
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from time import perf_counter

import grpc
import uvloop

from benchmarks.measure import quantile
from benchmarks.messages import EMPTY_CALL, LOOKUP_ROUTE, as_bytes, lookup_bytes
from benchmarks.starting_line import wait_for_go
from benchmarks.workload import CHAIN_BLOCKS, LOOKED_UP, SEED, chains
from inferencecache.v1alpha1.inferencecache_pb2 import LookupRouteResponse

Call = Callable[[bytes], Awaitable[bytes]]


class Gateway:
    """Sends lookups and keeps what came back.

    Args:
        call: The RPC, bytes to bytes.
        requests: What to ask, in random order.
    """

    def __init__(self, call: Call, requests: list[bytes]) -> None:
        self._call = call
        self._requests = requests
        self._rng = random.Random(SEED)
        self.latencies_ms: list[float] = []
        self.codes: Counter[str] = Counter()

    async def ask(self, due: float) -> None:
        """Send one lookup that was due at *due*."""
        request = self._rng.choice(self._requests)
        try:
            answer = await self._call(request)
        except grpc.aio.AioRpcError as error:
            self.codes[f"{error.code().name} {error.details()}"] += 1
            return
        self.latencies_ms.append((perf_counter() - due) * 1_000)
        self.codes[LookupRouteResponse.FromString(answer).reason_code or "empty"] += 1

    async def at_rate(self, rate: float, duration_s: float) -> None:
        """Send *rate* lookups a second, whatever the answers do."""
        started = perf_counter()
        pending: set[asyncio.Task[None]] = set()
        for number in range(int(rate * duration_s)):
            due = started + number / rate
            await asyncio.sleep(max(0.0, due - perf_counter()))
            task = asyncio.create_task(self.ask(due))
            pending.add(task)
            task.add_done_callback(pending.discard)
        await asyncio.gather(*pending)

    async def closed_loop(self, workers: int, duration_s: float) -> None:
        """Keep *workers* lookups under way."""
        stop = perf_counter() + duration_s

        async def work() -> None:
            while perf_counter() < stop:
                await self.ask(perf_counter())

        await asyncio.gather(*(work() for _ in range(workers)))


async def run(arguments: argparse.Namespace) -> dict[str, object]:
    """Load the server as asked."""
    held = list(chains(arguments.chains, CHAIN_BLOCKS))[-LOOKED_UP:]
    async with grpc.aio.insecure_channel(arguments.target) as channel:
        await channel.channel_ready()
        method = EMPTY_CALL if arguments.empty else LOOKUP_ROUTE
        call = channel.unary_unary(method, as_bytes, as_bytes)
        gateway = Gateway(call, [lookup_bytes(chain) for chain in held])
        await gateway.closed_loop(1, 0.5)
        gateway.latencies_ms.clear()
        gateway.codes.clear()
        gc.freeze()
        wait_for_go()
        started = perf_counter()
        if arguments.rate:
            await gateway.at_rate(arguments.rate, arguments.seconds)
        else:
            await gateway.closed_loop(arguments.workers, arguments.seconds)
        elapsed_s = perf_counter() - started
    times = gateway.latencies_ms
    return {
        "per_s": len(times) / elapsed_s,
        "p50_ms": quantile(times, 0.5),
        "p99_ms": quantile(times, 0.99),
        "max_ms": max(times),
        "codes": dict(gateway.codes),
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--chains", type=int, required=True, help="chains in the index")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--rate", type=float, default=0, help="lookups/s, 0: closed loop")
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--empty", action="store_true", help="call a handler that does nothing")
    print(json.dumps(uvloop.run(run(parser.parse_args()))))


if __name__ == "__main__":
    main()
