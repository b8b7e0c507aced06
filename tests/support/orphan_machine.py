"""Stores in any order: children first, circles, labels twice, parents that never come."""

from dataclasses import asdict

from engine_events import CLEARED, batch_of, removed, stored
from held_index import HeldIndex
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from naive_orphans import NaiveOrphans

from inferencecache.events import (
    BlockRemoved,
    BlockStored,
    Event,
    EventMapper,
    batch_slices,
)
from inferencecache.fingerprint import prefix_hashes
from inferencecache.settings.producer import MapperSettings
from inferencecache.types import CacheTier

INDEX_SIZE = 16
HOLD = 6
LABELS = range(1, 6)

labels = st.lists(st.sampled_from(LABELS), min_size=1, max_size=3)
parents = st.sampled_from([None, None, None, *LABELS])
contents = st.sampled_from([0, 0, 0, 1])


def block_tokens(label: int, content: int, size: int) -> tuple[int, ...]:
    """Return the tokens of a block; a label seldom stands for its second content."""
    return tuple(range(1_000 * label + content, 1_000 * label + content + size))


@st.composite
def events(draw: st.DrawFn, size: int) -> Event:
    """Return a store, nine times in sixteen, a removal or, seldom, a clear."""
    kind = draw(st.integers(0, 15))
    if kind == 0:
        return CLEARED
    if kind <= 6:
        return removed(draw(labels))
    own = draw(labels)
    tokens = [block_tokens(label, draw(contents), size) for label in own]
    return stored(own, [token for block in tokens for token in block], draw(parents), size)


def is_faulty(event: Event) -> bool:
    """Tell whether a store is refused for its labels, which no slicing may hide."""
    if not isinstance(event, BlockStored):
        return False
    own = event.block_hashes
    return len(set(own)) < len(own) or event.parent_block_hash in own


class OrphanMachine(RuleBasedStateMachine):
    """A mapper agrees with its model about what is placed, waits, was given up or refused."""

    @initialize(size=st.sampled_from([8, 16, 32]))
    def begin(self, size: int) -> None:
        """Start with nothing; blocks smaller than the index's are only checked for claims."""
        self.size = size
        self.mapper = EventMapper(MapperSettings(orphan_hold_ns=HOLD))
        self.index = HeldIndex()
        self.model = NaiveOrphans(HOLD)
        self.now = self.stored_blocks = 0

    @rule(data=st.data(), count=st.integers(1, 6), blocks_max=st.sampled_from([1, 2, 100]))
    def publish(self, data: st.DataObject, count: int, blocks_max: int) -> None:
        """Publish a few events in one message, which is taken in as a whole or in slices."""
        batch = [data.draw(events(self.size)) for _ in range(count)]
        self.model.expire(self.now)
        for event in batch:
            parts = [batch_of([event])]
            if not is_faulty(event):
                parts = list(batch_slices(parts[0], blocks_max))
            for part in parts:
                self.expect(part.events[0])
        for part in batch_slices(batch_of(batch), blocks_max):
            self.index.apply(self.mapper.apply(part, self.now))

    def expect(self, event: Event) -> None:
        """Tell the model of an event."""
        if isinstance(event, BlockStored):
            own = event.block_hashes
            self.stored_blocks += len(own)
            flat = memoryview(event.packed_tokens).cast("I").tolist()
            tokens = [
                tuple(flat[start : start + self.size]) for start in range(0, len(flat), self.size)
            ]
            self.model.store(own, tokens, event.parent_block_hash, self.now)
        elif isinstance(event, BlockRemoved):
            for label in event.block_hashes:
                self.model.remove(label)
        else:
            self.model.clear()

    @rule(by=st.integers(1, HOLD))
    def wait(self, by: int) -> None:
        """Time passes."""
        self.now += by
        self.mapper.expire(self.now)
        self.model.expire(self.now)

    @invariant()
    def books_are_in_order(self) -> None:
        """Blocks, keys, totals and the index agree, and a block waits at most once."""
        if not hasattr(self, "mapper"):
            return
        self.mapper.check_invariants()
        assert self.index.tiers() == self.mapper.held_keys()
        counters = self.mapper.counters
        ended = counters.orphans_resolved + counters.orphans_dropped
        assert ended + self.mapper.orphan_blocks <= counters.orphaned_blocks <= self.stored_blocks

    @invariant()
    def agrees_with_its_model(self) -> None:
        """The same blocks are placed, wait and ended otherwise."""
        if not hasattr(self, "mapper") or self.size < INDEX_SIZE:
            return
        assert self.mapper.held_keys() == self.expected_keys()
        assert self.mapper.orphan_blocks == self.model.waiting_blocks
        counters = asdict(self.mapper.counters)
        names = ("orphaned_blocks", "orphans_resolved", "orphans_dropped", "unknown_removals")
        assert [counters[name] for name in names] == list(self.model.totals.values())
        assert counters["drops"] == self.model.drops

    def expected_keys(self) -> dict[tuple[str, int], CacheTier]:
        """Return the keys of the model's blocks."""
        own = self.size // INDEX_SIZE
        return {
            ("", key): CacheTier.T1
            for block in self.model.blocks.values()
            for key in prefix_hashes(block.path, INDEX_SIZE)[-own:]
        }

    def teardown(self) -> None:
        """What an engine has removed is claimed by nobody, and nothing waits for ever."""
        if not hasattr(self, "mapper"):
            return
        self.wait(HOLD)
        gone = [label for label in LABELS for _ in range(self.stored_blocks)]
        self.index.apply(self.mapper.apply(batch_of([removed(gone)]), self.now))
        self.mapper.check_invariants()
        assert self.index.tiers() == self.mapper.held_keys() == {}
        assert self.mapper.orphan_blocks == self.mapper.blocks_total == 0
