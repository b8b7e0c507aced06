"""A client process in the role of one engine and of a gateway that waits for what it published.

Publishes 50 batches a second, as a busy engine's scheduler steps; each stores new prompts of 100
blocks and removes blocks stored two seconds before, one event per block, last block first, though
none of a prompt that is looked up. Beside it one prompt after the other is looked up as soon as it
is published, again and again, until the server knows it. Payloads are made before the clock starts.
Prints latencies as JSON.
"""

import argparse
import asyncio
import contextlib
import gc
import json
import random
from dataclasses import dataclass
from time import perf_counter

import grpc
import msgspec
import uvloop
import zmq

from benchmarks.measure import quantile
from benchmarks.messages import LOOKUP_ROUTE, REPORT_CACHE_STATE, as_bytes, entries_bytes
from benchmarks.messages import lookup_bytes as asking
from benchmarks.starting_line import wait_for_go
from benchmarks.workload import BLOCK_TOKENS, SEED
from inferencecache.fingerprint import chain
from inferencecache.v1alpha1.inferencecache_pb2 import LookupRouteResponse

STEPS_PER_S = 50
PROMPT_BLOCKS = 100
_VOCABULARY = 151_936
_REMOVED_AFTER_STEPS = 2 * STEPS_PER_S
_PAUSE_S = 0.003
_LONGEST_S = 10.0


@dataclass(frozen=True, slots=True)
class Step:
    """One batch.

    Attributes:
        payload: Its bytes.
        request: A lookup of one of its prompts.
    """

    payload: bytes
    request: bytes


def steps(arguments: argparse.Namespace) -> list[Step]:
    """Return the batches of the whole run."""
    rng = random.Random(SEED)
    count = int(arguments.seconds * STEPS_PER_S)
    prompts_each = arguments.blocks_per_s // STEPS_PER_S // PROMPT_BLOCKS
    removed_each = arguments.evictions_per_s // STEPS_PER_S
    made: list[Step] = []
    stored: list[list[int]] = []
    for number in range(count):
        prompts = [_prompt(rng) for _ in range(prompts_each)]
        labels = [[rng.getrandbits(64) for _ in range(PROMPT_BLOCKS)] for _ in prompts]
        events: list[dict[str, object]] = list(map(_store, labels, prompts))
        stored.append([label for some in labels[1:] for label in reversed(some)])
        if number >= _REMOVED_AFTER_STEPS:
            gone = stored[number - _REMOVED_AFTER_STEPS][:removed_each]
            events += [_removal(label) for label in gone]
        payload = msgspec.msgpack.encode([1_800_000_000.0 + number / STEPS_PER_S, events, 0])
        made.append(Step(payload, asking(tuple(chain(prompts[0], BLOCK_TOKENS)))))
    return made


def _prompt(rng: random.Random) -> list[int]:
    return [rng.randrange(_VOCABULARY) for _ in range(PROMPT_BLOCKS * BLOCK_TOKENS)]


def _store(labels: list[int], prompt: list[int]) -> dict[str, object]:
    return {
        "type": "BlockStored",
        "block_hashes": labels,
        "parent_block_hash": None,
        "token_ids": prompt,
        "block_size": BLOCK_TOKENS,
        "lora_id": None,
        "medium": "GPU",
        "lora_name": None,
    }


def _removal(label: int) -> dict[str, object]:
    return {"type": "BlockRemoved", "block_hashes": [label], "medium": "GPU"}


class Engine:
    """Publishes, and looks up what it published.

    Args:
        socket: The publisher.
        channel: The server.
    """

    def __init__(self, socket: "zmq.Socket[bytes]", channel: grpc.aio.Channel) -> None:
        self._socket = socket
        self._call = channel.unary_unary(LOOKUP_ROUTE, as_bytes, LookupRouteResponse.FromString)
        self._last: tuple[float, bytes] | None = None
        self._published = asyncio.Event()
        self.latencies_ms: list[float] = []

    async def publish(self, made: list[Step]) -> float:
        """Publish every step when it is due; return the longest delay in doing so, in seconds."""
        started = perf_counter()
        latest = 0.0
        for number, step in enumerate(made):
            due = started + number / STEPS_PER_S
            await asyncio.sleep(max(0.0, due - perf_counter()))
            latest = max(latest, perf_counter() - due)
            self._socket.send_multipart([b"kv-events", number.to_bytes(8, "big"), step.payload])
            self._last = (perf_counter(), step.request)
            self._published.set()
        return latest

    async def wait_for_each(self) -> None:
        """Take the latest prompt and look it up until it is known, for ever."""
        while True:
            self._published.clear()
            await self._published.wait()
            if self._last is not None:
                published, request = self._last
                await self._until_known(request, published)
                self.latencies_ms.append((perf_counter() - published) * 1_000)

    async def _until_known(self, request: bytes, published: float) -> None:
        wanted = PROMPT_BLOCKS * BLOCK_TOKENS
        while True:
            answer = await self._call(request)
            scores = answer.replica_scores
            if answer.reason_code == "PREFIX_MATCH" and scores[0].matched_tokens == wanted:
                return
            if perf_counter() - published > _LONGEST_S:
                raise RuntimeError("a prompt did not become known")
            await asyncio.sleep(_PAUSE_S)


async def run(arguments: argparse.Namespace) -> dict[str, object]:
    """Do what was asked."""
    made = steps(arguments)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.PUB)
    socket.setsockopt(zmq.SNDHWM, 100_000)
    socket.bind(f"tcp://127.0.0.1:{arguments.port}")
    gc.freeze()
    wait_for_go()
    async with grpc.aio.insecure_channel(arguments.target) as channel:
        # A match needs a replica that is colder than another.
        report = channel.stream_unary(REPORT_CACHE_STATE, as_bytes, as_bytes)
        await report(iter([entries_bytes("another", (bytes(8),))]))
        engine = Engine(socket, channel)
        waiting = asyncio.create_task(engine.wait_for_each())
        late_s = await engine.publish(made)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
    context.destroy(0)
    found = sorted(engine.latencies_ms)
    return {
        "p50_ms": quantile(found, 0.5),
        "p99_ms": quantile(found, 0.99),
        "max_ms": found[-1],
        "samples": len(found),
        "late_ms": late_s * 1_000,
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--blocks-per-s", type=int, default=20_000)
    parser.add_argument("--evictions-per-s", type=int, default=0)
    print(json.dumps(uvloop.run(run(parser.parse_args()))))


if __name__ == "__main__":
    main()
