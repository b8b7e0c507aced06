"""A prefix index and its oracle, driven together and compared through the public interface."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum

from index_vocabulary import CHAIN, FAR_PAST_NS, MIXED, TTLS_NS
from naive_index import Entry, NaiveIndex
from plain_update import PlainUpdate

from inferencecache.index import IndexEvent, PackedHashes, PrefixIndex, StateUpdate
from inferencecache.index.packing import pack
from inferencecache.settings.index import IndexSettings
from inferencecache.types import PROBE_TENANT_ID, EvictionAlgorithm, PartitionKey, Scope

Place = tuple[PartitionKey, bytes, str]


@dataclass(slots=True)
class TableRules:
    """Tenant rules in three dicts, so that a test can change them at any time."""

    ttls_ns: dict[str, int] = field(default_factory=dict)
    quotas: dict[str, int | None] = field(default_factory=dict)
    algorithms: dict[str, EvictionAlgorithm] = field(default_factory=dict)
    revision: int = 0

    def ttl_ns(self, tenant_id: str) -> int:
        """Return how long the tenant's entries live."""
        return self.ttls_ns.get(tenant_id, TTLS_NS[-1])

    def quota(self, tenant_id: str) -> int | None:
        """Return how many keys the tenant may have."""
        return self.quotas.get(tenant_id)

    def algorithm(self, tenant_id: str) -> EvictionAlgorithm:
        """Return how the tenant's victims are chosen."""
        return self.algorithms.get(tenant_id, EvictionAlgorithm.LRU)


def built(update: PlainUpdate) -> StateUpdate:
    """Return the update as the index takes it."""
    state = StateUpdate(
        tenant_id=update.tenant_id,
        model_id=update.model_id,
        replica_id=update.replica_id,
        hash_scheme=update.hash_scheme,
        timestamp_ns=update.timestamp_ns,
        adapter_id=update.adapter_id,
    )
    for prefix in update.prefixes:
        where = {"tier": prefix.tier, "adapter_id": prefix.adapter_id}
        whole = {"prefix_hash": prefix.prefix_hash, "token_count": prefix.token_count}
        if prefix.is_chain():
            blocks = (list(prefix.block_hashes), list(prefix.block_token_counts))
            state.add_chain(*blocks, **where, **whole)
        else:
            state.add_prefix(**whole, **where)
    state.stats = update.stats
    return state


class IndexTwin:
    """Both indexes, one clock; each operation goes to both, :meth:`check` compares them.

    Args:
        settings: Limits of both.
        chain: Blocks that are asked for in this order by every check.
        others: Further hashes that may be held.
    """

    def __init__(
        self,
        settings: IndexSettings,
        chain: Sequence[bytes] = CHAIN,
        others: Sequence[bytes] = (*MIXED, b""),
    ) -> None:
        self.chain = chain
        self.hashes = (*chain, *others)
        self.rules = TableRules()
        self.index = PrefixIndex(settings, self.rules)
        self.model = NaiveIndex(settings, self.rules)
        self.now_ns = 10**15
        self.partitions: set[PartitionKey] = set()
        self.sweep: PendingSweep | None = None

    def report(self, update: PlainUpdate, *, sliced: bool = False) -> None:
        """Apply an update, optionally slice by slice with reads in between."""
        for adapter_id in {update.adapter_id, *(p.adapter_id for p in update.prefixes)}:
            place = (update.tenant_id, update.model_id, update.hash_scheme)
            self.partitions.add(PartitionKey(*place, adapter_id))
        if sliced:
            for _ in self.index.report_slices(built(update), self.now_ns):
                self.index.check_invariants()
                self.index.snapshot()
        else:
            self.index.report(built(update), self.now_ns)
        self.model.report(update, self.now_ns, self._survived)

    def apply(self, event: IndexEvent) -> None:
        """Apply an event."""
        self.index.apply(event, self.now_ns)
        self.model.apply(event, self.now_ns)

    def credit(self, key: PartitionKey, blocks: list[bytes], depths: dict[str, int]) -> None:
        """Count one use."""
        self.index.credit(key, blocks, depths)
        self.model.credit(key, blocks, depths)

    def match_chain(self, key: PartitionKey, blocks: list[bytes], counts: list[int]) -> list:
        """Look a chain up in both; the answers must agree."""
        found = sorted(self.index.match_chain(key, blocks, counts, self.now_ns))
        assert found == self.model.match_chain(key, blocks, counts, self.now_ns)
        if len(set(map(len, blocks))) == 1 and blocks[0]:
            chain = PackedHashes(pack(blocks, len(blocks[0])), len(blocks[0]))
            assert found == sorted(self.index.match_chain(key, chain, counts, self.now_ns))
        return found

    def match_exact(self, key: PartitionKey, block_hash: bytes) -> list:
        """Look one hash up in both; the answers must agree."""
        found = sorted(self.index.match_exact(key, block_hash, self.now_ns))
        assert found == self.model.match_exact(key, block_hash, self.now_ns)
        return found

    def sweep_whole(self) -> None:
        """Sweep at once; a sweep in pieces ends first."""
        self.finish_sweep()
        self.index.sweep(self.now_ns)
        self.model.sweep(self.now_ns)

    def step_sweep(self) -> None:
        """Do one slice of a sweep, starting one if none is under way."""
        if self.sweep is None:
            self.sweep = PendingSweep(self)
        if self.sweep.step():
            self.sweep = None

    def finish_sweep(self) -> None:
        """Do the slices that are left of a sweep under way."""
        while self.sweep is not None:
            self.step_sweep()

    def check(self) -> None:
        """Assert that everything both can be asked about is the same."""
        self.index.check_invariants()
        assert self.held() == self.expected()
        self._check_chains()
        self._check_numbers()
        self._check_presence()
        self._check_statistics()
        if not self.index.has_pending_reclaim:
            self.check_views()

    def check_views(self) -> None:
        """Assert that what operators are shown is exact; what is to be reclaimed goes for it."""
        for place in {key[:2] for key in self.partitions if key.tenant_id != PROBE_TENANT_ID}:
            state = self.index.cache_state(*place)
            names = [name for *scope, name in self.model.stats if tuple(scope) == place]
            assert [record.replica_id for record in state.replicas] == sorted(names)
            assert state.total_prefixes == sum(key[:2] == place for key, _ in self.model.table)
        self._check_snapshot()
        self.index.check_invariants()

    def held(self) -> dict[Place, tuple[int, int, int]]:
        """Return every entry of the index: (token count, last seen, tier)."""
        return {
            (key, block_hash, name): (tokens, seen_ns, tier)
            for key in self.partitions
            for block_hash in self.hashes
            for name, tokens, seen_ns, tier, _ in self.index.match_exact(
                key, block_hash, FAR_PAST_NS
            )
        }

    def expected(self) -> dict[Place, tuple[int, int, int]]:
        """Return every entry of the oracle in the same form."""
        return {
            (key, block_hash, name): (e.token_count, e.last_seen_ns, e.tier)
            for key, block_hash, name, e in self.model.records()
        }

    def records(self) -> dict[Place, Entry]:
        """Return the oracle's entries by place."""
        return {(key, h, name): entry for key, h, name, entry in self.model.records()}

    def _assert_keys(self, got: Mapping[object, int], want: Mapping[object, int]) -> None:
        """The plain key counts are exact, but for what a clear left to be reclaimed."""
        for name in got.keys() | want.keys():
            extra = got.get(name, 0) - want.get(name, 0)
            assert extra == 0 or (extra > 0 and self.index.has_pending_reclaim)

    def _survived(self, key: PartitionKey, block_hash: bytes, replica_id: str) -> bool:
        found = self.index.match_exact(key, block_hash, FAR_PAST_NS)
        return any(candidate[0] == replica_id for candidate in found)

    def _check_chains(self) -> None:
        for key in self.partitions:
            for first in (0, 3):
                blocks = list(self.chain[first:])
                self.match_chain(key, blocks, [16] * len(blocks))

    def _check_numbers(self) -> None:
        index, model = self.index, self.model
        everywhere = [key for key, *_ in model.records()]
        keys = Counter(key.tenant_id for key, _ in model.table)
        assert index.entries == sum(key.tenant_id != PROBE_TENANT_ID for key in everywhere)
        keys.pop(PROBE_TENANT_ID, None)
        self._assert_keys({"": index.prefixes}, {"": keys.total()})
        self._assert_keys(index.tenant_prefixes(), keys)
        assert index.is_empty() == (not keys)
        by_model = Counter(
            key.model_id for key, _ in model.table if key.tenant_id != PROBE_TENANT_ID
        )
        self._assert_keys(index.prefixes_by_model, by_model)
        counters = index.counters
        assert {k: v for k, v in counters.evictions.items() if v} == model.evictions
        assert {k: v for k, v in counters.tenant_evictions.items() if v} == model.tenant_evictions
        assert counters.timestamps_clamped == model.timestamps_clamped
        assert counters.fenced_updates == model.fenced_updates

    def _check_presence(self) -> None:
        places = {(key.tenant_id, key.model_id) for key, _ in self.model.table}
        for scope in {Scope(*key[:3]) for key in self.partitions}:
            serving = self.model.serving_replicas(scope)
            assert list(self.index.serving_replicas(scope)) == serving
            assert self.index.serving_count(scope) == len(serving)
            assert self.index.has_model(*scope[:2]) == (scope[:2] in places)
            tenants = {tenant_id for tenant_id, _ in places}
            assert self.index.has_tenant(scope.tenant_id) == (scope.tenant_id in tenants)

    def _check_statistics(self) -> None:
        model = self.model
        for place in {key[:2] for key in self.partitions}:
            found = {
                name: (r.stats, r.reported_ns, r.last_seen_ns)
                for name, r in self.index.stats_of(*place).items()
            }
            assert found == {
                owner[2]: (r.stats, r.reported_ns, r.last_seen_ns)
                for owner, r in model.stats.items()
                if owner[:2] == place
            }

    def _check_snapshot(self) -> None:
        snapshot = self.index.snapshot()
        keys = Counter(key.tenant_id for key, _ in self.model.table)
        keys.pop(PROBE_TENANT_ID, None)
        assert snapshot.total_prefixes == keys.total()
        rows = {(row.tenant_id, row.replica_id): row for row in snapshot.replicas}
        assert list(rows) == sorted(rows)
        assert rows.keys() == self._row_names()
        for (tenant_id, replica_id), row in rows.items():
            self._check_replica_row(tenant_id, replica_id, row)
        tenants = [row.tenant_id for row in snapshot.tenants]
        assert tenants == sorted(keys.keys() | {tenant_id for tenant_id, _ in rows})
        for row in snapshot.tenants:
            rates = [
                r.stats.hit_rate
                for r in snapshot.replicas
                if r.tenant_id == row.tenant_id and r.stats is not None
            ]
            mean = fsum(rates) / len(rates) if rates else 0.0
            assert row.entries == keys[row.tenant_id]
            assert row.hit_rate_reported == bool(rates)
            assert abs(row.hit_rate - mean) <= 1e-9

    def _row_names(self) -> set[tuple[str, str]]:
        names = {(key.tenant_id, name) for key, _, name, _ in self.model.records()}
        names |= {(tenant_id, name) for tenant_id, _, name in self.model.stats}
        return {row for row in names if row[0] != PROBE_TENANT_ID}

    def _check_replica_row(self, tenant_id: str, replica_id: str, row: object) -> None:
        ages = [
            entry.last_seen_ns
            for key, _, name, entry in self.model.records()
            if key.tenant_id == tenant_id and name == replica_id
        ]
        records = [
            record
            for owner, record in self.model.stats.items()
            if (owner[0], owner[2]) == (tenant_id, replica_id)
        ]
        newest_ns = max((record.last_seen_ns for record in records), default=None)
        latest = [r.stats for r in records if r.last_seen_ns == newest_ns] or [None]
        assert row.prefix_count == len(ages)
        assert row.last_event_ns == max(ages, default=None)
        assert row.last_seen_ns == newest_ns
        assert row.stats in latest


class PendingSweep:
    """A sweep in slices while other operations go on.

    What disappears must have been due at its start; what was due then and did not change must be
    gone at its end. What it has removed may come back, with the same stamp, and stay.
    """

    def __init__(self, twin: IndexTwin) -> None:
        self.twin = twin
        self.now_ns = twin.now_ns
        self.slices: Iterator[None] = twin.index.sweep_slices(twin.now_ns)
        self.due = {
            place: entry.last_seen_ns
            for place, entry in twin.records().items()
            if self._is_due(place[0].tenant_id, entry.last_seen_ns)
        }
        self.due_statistics = {
            owner: record.last_seen_ns
            for owner, record in twin.model.stats.items()
            if self._is_due(owner[0], record.last_seen_ns)
        }

    def step(self) -> bool:
        """Do one slice and take over what it removed; return whether it was the last."""
        is_last = next(self.slices, StopIteration) is StopIteration
        twin, held = self.twin, self.twin.held()
        for place, entry in twin.records().items():
            tenant_id = place[0].tenant_id
            if place not in held:
                assert self._is_due(tenant_id, entry.last_seen_ns)
                twin.model.remove(*place)
                self.due.pop(place, None)
                if tenant_id != PROBE_TENANT_ID:
                    twin.model.evictions[twin.rules.algorithm(tenant_id), "ttl"] += 1
            elif is_last:
                assert self.due.get(place) != entry.last_seen_ns
        self._take_over_statistics(is_last=is_last)
        return is_last

    def _take_over_statistics(self, *, is_last: bool) -> None:
        twin = self.twin
        for owner, record in list(twin.model.stats.items()):
            if owner[2] not in twin.index.stats_of(*owner[:2]):
                assert self._is_due(owner[0], record.last_seen_ns)
                del twin.model.stats[owner]
                self.due_statistics.pop(owner, None)
            elif is_last:
                assert self.due_statistics.get(owner) != record.last_seen_ns

    def _is_due(self, tenant_id: str, seen_ns: int) -> bool:
        return self.now_ns - seen_ns >= self.twin.rules.ttl_ns(tenant_id)
