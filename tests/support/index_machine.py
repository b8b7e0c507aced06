"""Every operation of the index in any order, against the oracle, as a hypothesis state machine."""

from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import index_vocabulary as vocabulary
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from index_twin import IndexTwin
from plain_update import PlainPrefix, PlainUpdate

from inferencecache.index import EventType, IndexEvent, block_table, partition
from inferencecache.settings.index import IndexSettings
from inferencecache.types import EvictionAlgorithm, PartitionKey, StatsReport

updates = {
    "tenant_id": vocabulary.tenants,
    "model_id": vocabulary.models,
    "replica_id": vocabulary.replicas,
    "hash_scheme": vocabulary.schemes,
    "adapter_id": vocabulary.adapters,
    "offset_ns": vocabulary.age_offsets_ns,
    "stats": vocabulary.maybe_stats,
}
places = st.builds(
    PartitionKey,
    vocabulary.tenants,
    vocabulary.models,
    vocabulary.lookup_schemes,
    vocabulary.adapters,
)


class IndexMachine(RuleBasedStateMachine):
    """Without any limit but age: reports, events, sweeps, time."""

    limits = st.just({})

    @initialize(
        slice_blocks=st.sampled_from([1, 2, 5, 2048]),
        fence=st.booleans(),
        lfu=st.sampled_from([(), ("t1",), ("t1", "t2")]),
        counts_as_big=st.sampled_from([(3, 1), (3, 16), (8_192, 1)]),
        limits=st.data(),
    )
    def begin(
        self,
        slice_blocks: int,
        limits: st.DataObject,
        lfu: tuple[str, ...],
        counts_as_big: tuple[int, int],
        *,
        fence: bool,
    ) -> None:
        """Start empty, with the sizes from which partitions and evicted parts count as big."""
        split_blocks, inherited_blocks = counts_as_big
        self.sizes = [
            patch.object(block_table, "SPLIT_BLOCKS", split_blocks),
            patch.object(partition, "INHERITED_BLOCKS_MIN", inherited_blocks),
        ]
        for size in self.sizes:
            size.start()
        settings = IndexSettings(
            slice_blocks=slice_blocks, clear_fence=fence, **limits.draw(self.limits)
        )
        self.twin = IndexTwin(settings)
        self.twin.rules.algorithms = dict.fromkeys(lfu, EvictionAlgorithm.LFU)
        self.reclaim: Iterator[None] | None = None

    @invariant()
    def agree(self) -> None:
        """After each step both indexes are the same."""
        if hasattr(self, "twin"):
            self.twin.check()

    @rule(**updates, prefixes=vocabulary.prefix_lists, sliced=st.booleans())
    def report(
        self,
        prefixes: tuple[PlainPrefix, ...],
        offset_ns: int | None,
        *,
        sliced: bool,
        stats: StatsReport | None,
        **where: str,
    ) -> None:
        """Report anything, also nothing."""
        self._report(prefixes, offset_ns, stats, where, sliced=sliced)

    @rule(replica_id=vocabulary.replicas, prefixes=vocabulary.singles_in_a_row())
    def report_plainly(self, replica_id: str, prefixes: tuple[PlainPrefix, ...]) -> None:
        """Report a chain to the busiest place, one entry per block, now."""
        where = {"tenant_id": "t1", "model_id": "m1", "hash_scheme": "vllm"}
        self._report(prefixes, None, None, where | {"replica_id": replica_id})

    @rule(replica_id=vocabulary.replicas, prefix=vocabulary.chain_entries())
    def report_chain(self, replica_id: str, prefix: PlainPrefix) -> None:
        """Report a chain to the busiest place, now."""
        where = {"tenant_id": "t1", "model_id": "m1", "hash_scheme": "vllm"}
        self._report((prefix,), None, None, where | {"replica_id": replica_id})

    @rule(
        kind=st.sampled_from([EventType.PREFIX_EVICTED] * 5 + list(EventType)),
        tenant_id=vocabulary.tenants,
        model_id=vocabulary.models,
        replica_id=vocabulary.replicas,
        prefix_hash=vocabulary.hashes,
        adapter_id=vocabulary.adapters,
        offset_ns=vocabulary.age_offsets_ns,
    )
    def publish(self, kind: EventType, offset_ns: int | None, **fields: str | bytes) -> None:
        """Evict a block, clear a replica, or give a sign of life."""
        event = IndexEvent(type=kind, timestamp_ns=self._stamp(offset_ns), **fields)
        self.twin.apply(event)

    @rule(replica_id=vocabulary.replicas, offset_ns=vocabulary.age_offsets_ns)
    def clear(self, replica_id: str, offset_ns: int | None) -> None:
        """Clear a replica in the busiest place."""
        kind, stamp_ns = EventType.ALL_CLEARED, self._stamp(offset_ns)
        where = {"tenant_id": "t1", "model_id": "m1", "replica_id": replica_id}
        self.twin.apply(IndexEvent(type=kind, timestamp_ns=stamp_ns, **where))

    @rule(
        replica_id=vocabulary.replicas,
        prefixes=vocabulary.one_entry,
        offset_ns=vocabulary.age_offsets_ns,
        stats=vocabulary.stats_reports,
    )
    def report_oneself(
        self,
        replica_id: str,
        prefixes: tuple[PlainPrefix, ...],
        offset_ns: int | None,
        stats: StatsReport,
    ) -> None:
        """Report statistics and one entry to the busiest place, also late."""
        where = {"tenant_id": "t1", "model_id": "m1", "hash_scheme": "vllm"}
        self._report(prefixes, offset_ns, stats, where | {"replica_id": replica_id})

    @rule(delta_ns=vocabulary.time_jumps_ns)
    def pass_time(self, delta_ns: int) -> None:
        """Let time pass; a clock may also be set back a little."""
        if delta_ns < 0:
            self.twin.finish_sweep()
        self.twin.now_ns += delta_ns

    @rule()
    def sweep(self) -> None:
        """Sweep at once."""
        self.twin.sweep_whole()

    @rule()
    def sweep_a_slice(self) -> None:
        """Sweep a slice, with whatever comes before the next one."""
        self.twin.step_sweep()

    @precondition(lambda self: self.twin.index.has_pending_reclaim)
    @rule()
    def reclaim_a_slice(self) -> None:
        """Free a little of what a clear left behind."""
        if self.reclaim is None:
            self.reclaim = self.twin.index.reclaim_slices()
        if next(self.reclaim, StopIteration) is StopIteration:
            self.reclaim = None

    @precondition(lambda self: self.twin.index.has_pending_reclaim)
    @rule()
    def look_at_it(self) -> None:
        """Show an operator everything while a clear has left something behind."""
        self.twin.check_views()

    @rule(
        tenant_id=vocabulary.tenants,
        ttl_ns=vocabulary.ttls_ns,
        algorithm=vocabulary.algorithms,
    )
    def switch_policy(self, tenant_id: str, ttl_ns: int, algorithm: str) -> None:
        """Change a tenant's time to live and eviction algorithm."""
        self.twin.finish_sweep()
        self.twin.rules.ttls_ns[tenant_id] = ttl_ns
        self.twin.rules.algorithms[tenant_id] = algorithm
        self.twin.rules.revision += 1

    @rule(key=places, blocks=vocabulary.request_chains, data=st.data())
    def look_up_chain(
        self, key: PartitionKey, blocks: tuple[bytes, ...], data: st.DataObject
    ) -> None:
        """Look a chain up and count the use of some of what was found."""
        size = len(blocks)
        counts = data.draw(st.lists(vocabulary.good_counts, min_size=size, max_size=size))
        found = self.twin.match_chain(key, list(blocks), counts)
        used = {c[0]: c[4] for c in found if data.draw(st.booleans())}
        if used:
            self.twin.credit(key, list(blocks), used)

    @rule(tenant_id=st.sampled_from(["t1", "t2"]), blocks=vocabulary.request_chains)
    def use(self, tenant_id: str, blocks: tuple[bytes, ...]) -> None:
        """Deliver a hint for everything that is found in the busiest place of a tenant."""
        key = PartitionKey(tenant_id, "m1", "vllm", "")
        found = self.twin.match_chain(key, list(blocks), [16] * len(blocks))
        self.twin.credit(key, list(blocks), {c[0]: c[4] for c in found})

    @rule(key=places, block_hash=vocabulary.hashes, is_used=st.booleans())
    def look_up_hash(self, key: PartitionKey, block_hash: bytes, *, is_used: bool) -> None:
        """Look one hash up and perhaps count its use."""
        found = self.twin.match_exact(key, block_hash)
        if found and is_used:
            self.twin.credit(key, [block_hash], {c[0]: 1 for c in found})

    @rule()
    def halve_uses(self) -> None:
        """Age all use counts."""
        for _ in self.twin.index.halve_credits_slices():
            self.twin.index.check_invariants()
        self.twin.model.halve_credits()

    def teardown(self) -> None:
        """End with everything reclaimed, swept and gone."""
        if not hasattr(self, "twin"):
            return
        for size in self.sizes:
            size.stop()
        for _ in self.twin.index.reclaim_slices():
            pass
        self.twin.check()
        self.twin.finish_sweep()
        self.twin.now_ns += 10**20
        self.twin.sweep_whole()
        self.twin.check()
        assert self.twin.index.entries == 0

    def _stamp(self, offset_ns: int | None) -> int:
        return 0 if offset_ns is None else self.twin.now_ns + offset_ns

    def _report(
        self,
        prefixes: tuple[PlainPrefix, ...],
        offset_ns: int | None,
        stats: StatsReport | None,
        where: dict[str, str],
        *,
        sliced: bool = False,
    ) -> None:
        update = PlainUpdate(
            prefixes=prefixes, timestamp_ns=self._stamp(offset_ns), stats=stats, **where
        )
        self.twin.report(self._admitted(update), sliced=sliced)

    def _admitted(self, update: PlainUpdate) -> PlainUpdate:
        """Return what is really sent of an update that was drawn."""
        return update


class CapMachine(IndexMachine):
    """The same under a cap so low that nearly every report evicts."""

    limits = st.fixed_dictionaries({"entries_max": st.sampled_from([1, 3, 8, 20])})

    def teardown(self) -> None:
        """Before the end, push out everything that was never used, so that use counts show."""
        if hasattr(self, "twin"):
            self.twin.hashes += vocabulary.FRESH
            self.twin.now_ns += 1
            newcomers = tuple(PlainPrefix(block, 16) for block in vocabulary.FRESH)
            where = {"tenant_id": "t1", "model_id": "m1", "hash_scheme": "vllm"}
            self.twin.report(PlainUpdate(replica_id="r1", prefixes=newcomers, **where))
            self.twin.check()
        super().teardown()


class QuotaMachine(IndexMachine):
    """The same with tenant quotas that come, change and go."""

    @rule(tenant_id=vocabulary.tenants, quota=vocabulary.quotas)
    def set_quota(self, tenant_id: str, quota: int | None) -> None:
        """Change how many keys a tenant may have, from its next update on."""
        self.twin.rules.quotas[tenant_id] = quota
        self.twin.rules.revision += 1


class CapAndQuotaMachine(QuotaMachine):
    """Both limits at once, one entry per report and every report later than the one before.

    So no two entries have the same age, and each victim is certain.
    """

    limits = st.fixed_dictionaries({"entries_max": st.sampled_from([1, 3, 8, 20])})

    def _admitted(self, update: PlainUpdate) -> PlainUpdate:
        self.twin.now_ns += 1_000
        alone = tuple(p for p in update.prefixes[:1] if len(p.claims()) == 1)
        return replace(update, timestamp_ns=0, prefixes=alone)


MACHINES = (IndexMachine, CapMachine, QuotaMachine, CapAndQuotaMachine)
