"""The index equals its oracle on chains far longer than one run may be.

Plain seeded randomness: the operations are few and large, so there is nothing to shrink.
"""

import os
import random

import pytest
from index_twin import IndexTwin
from plain_update import PlainPrefix, PlainUpdate

from inferencecache.index import EventType, IndexEvent, block_table
from inferencecache.settings.index import IndexSettings
from inferencecache.types import EvictionAlgorithm, PartitionKey

BLOCKS = tuple(number.to_bytes(8, "big") for number in range(1_300))
KEY = PartitionKey("t", "m", "vllm", "")
SEEDS = {"dev": 6, "ci": 30}[os.environ.get("HYPOTHESIS_PROFILE", "dev")]
OPERATIONS = 30


class LongChains:
    """Random operations on stretches of one long chain.

    Args:
        seed: Decides everything.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        settings = IndexSettings(
            entries_max=self.random.choice([0, 0, 700, 2_500]),
            slice_blocks=self.random.choice([1, 300, 2_048]),
        )
        self.twin = IndexTwin(settings, BLOCKS, ())
        self.twin.rules.algorithms["t"] = self.random.choice(list(EvictionAlgorithm))
        self.operations = [self.report, self.report, self.report, self.evict, self.use]
        self.operations += [self.clear, self.sweep, self.pass_time]

    def stretch(self) -> tuple[bytes, ...]:
        """Return some consecutive blocks, often up to a run's limit and over."""
        first = self.random.choice([0, 0, 1, 511, 512, self.random.randrange(1_299)])
        length = self.random.choice([1, 2, 511, 512, 513, 1_024, self.random.randrange(1, 1_300)])
        return BLOCKS[first : first + length]

    def replica(self) -> str:
        """Return a replica."""
        return self.random.choice(["r1", "r2", "r3"])

    def report(self) -> None:
        """Report a stretch, as a chain or block by block."""
        blocks = self.stretch()
        step = self.random.choice([16, 16, 32])
        tier = self.random.choice([0, 0, 2])
        prefixes = tuple(PlainPrefix(b, step * n, (), (), tier) for n, b in enumerate(blocks))
        if self.random.random() < 0.5:
            counts = (step,) * len(blocks)
            prefixes = (PlainPrefix(block_hashes=blocks, block_token_counts=counts, tier=tier),)
        update = PlainUpdate(
            tenant_id="t",
            model_id="m",
            replica_id=self.replica(),
            hash_scheme="vllm",
            prefixes=prefixes,
        )
        self.twin.report(update, sliced=self.random.random() < 0.3)

    def evict(self) -> None:
        """Evict a block here and there."""
        for _ in range(self.random.choice([1, 5])):
            self.event(EventType.PREFIX_EVICTED, self.random.choice(BLOCKS))

    def clear(self) -> None:
        """Clear a replica and reclaim some or all of what it held."""
        self.event(EventType.ALL_CLEARED)
        slices = self.twin.index.reclaim_slices()
        for _ in range(self.random.choice([0, 1, 1_000_000])):
            if next(slices, StopIteration) is StopIteration:
                break

    def event(self, kind: EventType, block: bytes = b"") -> None:
        """Publish an event."""
        who = {"tenant_id": "t", "model_id": "m", "replica_id": self.replica()}
        self.twin.apply(IndexEvent(type=kind, prefix_hash=block, **who))

    def use(self) -> None:
        """Look a stretch up and deliver what is found."""
        blocks = list(self.stretch())
        found = self.twin.match_chain(KEY, blocks, [16] * len(blocks))
        self.twin.credit(KEY, blocks, {candidate[0]: candidate[4] for candidate in found})

    def sweep(self) -> None:
        """Sweep at once."""
        self.twin.sweep_whole()

    def pass_time(self) -> None:
        """Let time pass, sometimes past the time to live."""
        self.twin.now_ns += self.random.choice([1, 1, 1, 30_000, 61_000])


@pytest.mark.parametrize("seed", range(SEEDS))
def test_long_chains_equal_the_oracle(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each operation both hold the same and answer the same, in partitions big or small."""
    monkeypatch.setattr(block_table, "SPLIT_BLOCKS", 600 if seed % 2 else 8_192)
    chains = LongChains(seed)
    for _ in range(OPERATIONS):
        chains.random.choice(chains.operations)()
        chains.twin.check()
