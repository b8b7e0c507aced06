"""Reports, sweeps and halvings in slices that take turns, and events between them, keep every rule.

Plain seeded randomness: which victims go depends on who finishes first, so there is no oracle; the
index recounts itself after each step.
"""

import os
import random
from collections.abc import Iterator

import pytest
from index_twin import TableRules

from inferencecache.index import EventType, IndexEvent, PackedHashes, PrefixIndex, StateUpdate
from inferencecache.index.packing import pack
from inferencecache.settings.index import IndexSettings
from inferencecache.types import EvictionAlgorithm, PartitionKey

BLOCKS = [number.to_bytes(8, "big") for number in range(200)]
KEY = PartitionKey("t", "m", "vllm", "")
SEEDS = {"dev": 30, "ci": 60}[os.environ.get("HYPOTHESIS_PROFILE", "dev")]
OPERATIONS = 100
SLICES_AT_ONCE = 8


class Interleaved:
    """Random operations on one tenant, those in slices a few at a time.

    Args:
        seed: Decides everything.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rules = TableRules()
        choice = self.random.choice
        entries_max, slice_blocks = choice([0, 0, 50, 150]), choice([1, 5, 40])
        limits = IndexSettings(entries_max=entries_max, slice_blocks=slice_blocks)
        self.index = PrefixIndex(limits, self.rules)
        self.now_ns = 10**15
        self.under_way: list[Iterator[None]] = []
        self.operations = [self.report, self.report, self.evict, self.evict, self.begin_upkeep]
        self.operations += [self.clear, self.use, self.change_rules, self.change_rules]

    def stretch(self) -> list[bytes]:
        """Return some consecutive blocks."""
        first = self.random.randrange(200)
        return BLOCKS[first : first + self.random.choice([1, 5, 40, 200])]

    def report(self) -> None:
        """Begin a report."""
        blocks = self.stretch()
        update = StateUpdate(
            tenant_id="t",
            model_id="m",
            replica_id=self.random.choice(["r1", "r1", "r2"]),
            hash_scheme=self.random.choice(["vllm", "vllm", "sglang"]),
            adapter_id=self.random.choice(["", "", "a"]),
            timestamp_ns=self.random.choice([0, self.now_ns - self.random.randrange(100)]),
        )
        if self.random.random() < 0.5:
            update.add_chain(blocks, [16] * len(blocks), tier=self.random.choice([0, 0, 2]))
        else:
            counts = [self.random.randrange(100) for _ in blocks]
            update.add_prefixes(PackedHashes(pack(blocks, 8), 8), counts)
        self.under_way.append(self.index.report_slices(update, self.now_ns))

    def event(self, kind: EventType, block: bytes = b"") -> None:
        """Publish an event."""
        who = {"tenant_id": "t", "model_id": "m", "replica_id": self.random.choice(["r1", "r2"])}
        self.index.apply(IndexEvent(type=kind, prefix_hash=block, **who), self.now_ns)

    def evict(self) -> None:
        """Evict some blocks."""
        for block in self.random.sample(BLOCKS, self.random.choice([1, 5, 30])):
            self.event(EventType.PREFIX_EVICTED, block)

    def clear(self) -> None:
        """Clear a replica."""
        self.event(EventType.ALL_CLEARED)

    def begin_upkeep(self) -> None:
        """Begin a sweep, a reclaim or a halving, and let time pass."""
        index = self.index
        begun = [index.sweep_slices(self.now_ns), index.reclaim_slices()]
        self.under_way.append(self.random.choice([*begun, index.halve_credits_slices()]))
        self.now_ns += self.random.choice([1, 50, 30_000, 61_000, -200])

    def change_rules(self) -> None:
        """Change quota and algorithm."""
        self.rules.quotas["t"] = self.random.choice([None, None, 20, 100])
        self.rules.algorithms["t"] = self.random.choice(list(EvictionAlgorithm))
        self.rules.revision += 1

    def use(self) -> None:
        """Look a stretch up, packed and not, and deliver what is found."""
        blocks = self.stretch()
        found = self.index.match_chain(KEY, blocks, [16] * len(blocks), self.now_ns)
        packed = PackedHashes(pack(blocks, 8), 8)
        assert found == self.index.match_chain(KEY, packed, b"\x10" * len(blocks), self.now_ns)
        self.index.credit(KEY, blocks, {candidate[0]: candidate[4] for candidate in found})

    def go_on(self, left: int) -> None:
        """Do slices, of any, until no more than *left* are under way."""
        for _ in range(self.random.choice([0, 1, 3, 20])):
            self.do_slice()
        while len(self.under_way) > left:
            self.do_slice()

    def do_slice(self) -> None:
        """Do a slice of any that is under way."""
        if self.under_way:
            slices = self.random.choice(self.under_way)
            if next(slices, StopIteration) is StopIteration:
                self.under_way.remove(slices)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_work_in_slices_may_take_turns(seed: int) -> None:
    """Whatever else happens in between, nothing fails and every rule of the index holds."""
    interleaved = Interleaved(seed)
    for _ in range(OPERATIONS):
        interleaved.random.choice(interleaved.operations)()
        interleaved.go_on(SLICES_AT_ONCE)
        interleaved.index.check_invariants()
    interleaved.go_on(0)
    interleaved.index.check_invariants()
