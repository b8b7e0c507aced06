"""The way of an engine's event from bytes to operations, and the memory of what is tracked.

Workload: map events with 64 blocks (8 to a batch) and with one block (64 to a batch), each a child
of a block stored before, 16 tokens of a usual vocabulary per block; removals of all of it; 1 M
blocks in prompts of 512 and 450 k one-token pages for the memory, in fresh processes.
Seed: ``workload.SEED``. Budget: about 30 s.
"""

import gc
import json
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time_ns

import msgspec

from benchmarks.measure import NS_PER_S, require
from benchmarks.options import Options
from benchmarks.row import Bound, Row
from benchmarks.workload import BLOCK_TOKENS, SEED
from inferencecache.events import (
    BlockStored,
    EventBatch,
    EventMapper,
    Outbox,
    decode_batch,
)
from inferencecache.events.token_packing import pack_tokens
from inferencecache.settings.producer import DecodeSettings, MapperSettings, OutboxSettings

_VOCABULARY = 151_936
_ROUNDS = 9
_DECODE = DecodeSettings()
_PAGE_BYTES = 4_096


def run(options: Options) -> Iterator[Row]:
    """Yield the rows of the producer's core."""
    for blocks, events, target in ((64, 8, 300_000), (1, 64, 100_000)):
        payloads = _payloads(blocks, events, batches=60 if blocks > 1 else 120)
        total = len(payloads) * blocks * events
        rates = [_rate(payloads, total) for _ in range(_ROUNDS)]
        yield Row(
            what=f"decode, fingerprint and map, map events of {blocks} blocks",
            unit="blocks/s",
            value=statistics.median(rates),
            bound=Bound.AT_LEAST,
            target=target,
            note=f"one core by CPU time; best of {_ROUNDS} runs {max(rates):,.0f}",
        )
    yield from _delivery()
    yield from _memory(options)


def _payloads(blocks: int, events: int, batches: int) -> list[bytes]:
    """Return batches of map events; every event continues one of an earlier batch."""
    rng = random.Random(SEED)
    parents: list[int | None] = [None] * events
    payloads = []
    for _ in range(batches):
        batch = []
        for position in range(events):
            hashes = [rng.getrandbits(64) for _ in range(blocks)]
            batch.append(_store(rng, hashes, parents[position]))
            parents[position] = hashes[-1]
        payloads.append(msgspec.msgpack.encode([1_800_000_000.5, batch, 0]))
    return payloads


def _store(rng: random.Random, hashes: list[int], parent: int | None) -> dict[str, object]:
    return {
        "type": "BlockStored",
        "block_hashes": hashes,
        "parent_block_hash": parent,
        "token_ids": [rng.randrange(_VOCABULARY) for _ in range(BLOCK_TOKENS * len(hashes))],
        "block_size": BLOCK_TOKENS,
        "lora_id": None,
        "medium": "GPU",
        "lora_name": None,
    }


def _rate(payloads: list[bytes], total: int) -> float:
    mapper = EventMapper(MapperSettings())
    started = process_time_ns()
    for payload in payloads:
        mapper.apply(decode_batch(payload, _DECODE), 0)
    taken_ns = process_time_ns() - started
    require(mapper.keys_total == total, "every block has become a key")
    return total * NS_PER_S / taken_ns


def _delivery() -> Iterator[Row]:
    """Yield the cost of holding and taking changes."""
    rates = []
    for _ in range(_ROUNDS):
        mapper = EventMapper(MapperSettings())
        batches = [decode_batch(payload, _DECODE) for payload in _payloads(64, 8, 20)]
        operations = [mapper.apply(batch, 0) for batch in batches]
        outbox = Outbox(OutboxSettings(), BLOCK_TOKENS)
        started = process_time_ns()
        for some in operations:
            outbox.add(some)
        delivery = outbox.take()
        taken_ns = process_time_ns() - started
        require(delivery is not None and len(delivery.chains) >= 1, "a delivery comes out")
        rates.append(mapper.keys_total * NS_PER_S / taken_ns)
    yield Row(
        what="outbox: gather stored blocks and take them as chains",
        unit="blocks/s",
        value=statistics.median(rates),
        note="one core by CPU time",
    )


def _memory(options: Options) -> Iterator[Row]:
    for shape, blocks in (
        ("blocks", options.blocks_max),
        ("pages", options.blocks_max * 45 // 100),
    ):
        command = [sys.executable, "-m", "benchmarks.bench_events", shape, str(blocks)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        yield Row(
            what=f"memory of {blocks // 1_000:,} k tracked engine {shape}",
            unit="B/block",
            value=json.loads(output),
            bound=Bound.AT_MOST,
            target=300,
            note="pages hold one token each" if shape == "pages" else "prompts of 512 blocks",
        )


def _build(shape: str, blocks: int) -> float:
    """Return resident bytes per tracked block."""
    mapper = EventMapper(MapperSettings(blocks_max=2 * blocks))
    size, per_prompt = (1, 8_192) if shape == "pages" else (BLOCK_TOKENS, 512)
    rng = random.Random(SEED)
    for _ in range(4):
        mapper.apply(_prompt(rng, per_prompt, size), 0)
    gc.collect()
    known, before = mapper.blocks_total, _resident_bytes()
    while mapper.blocks_total < known + blocks:
        mapper.apply(_prompt(rng, per_prompt, size), 0)
    gc.collect()
    return (_resident_bytes() - before) / (mapper.blocks_total - known)


def _prompt(rng: random.Random, blocks: int, size: int) -> EventBatch:
    hashes = [rng.getrandbits(64) for _ in range(blocks)]
    store = BlockStored(
        block_hashes=hashes,
        parent_block_hash=None,
        packed_tokens=pack_tokens([rng.randrange(_VOCABULARY) for _ in range(blocks * size)]),
        block_size=size,
        medium="GPU",
        opaque_from=blocks,
    )
    return EventBatch(timestamp_ns=0, rank=0, events=[store], faults={})


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_build(sys.argv[1], int(sys.argv[2]))))
