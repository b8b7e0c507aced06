"""The prefix index said as plainly as possible: dicts, one record per (key, replica), full scans.

The oracle of the state machines and the yardstick of the benchmarks. Only victims of exactly equal
age leave a choice; *survived*, when given, tells which of the tied ones another index kept.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plain_update import PlainPrefix, PlainStats, PlainUpdate, finite

from inferencecache.settings.index import IndexSettings
from inferencecache.types import (
    COLDEST_TIER,
    INT32_MAX,
    PROBE_TENANT_ID,
    Candidate,
    EvictionAlgorithm,
    PartitionKey,
    Scope,
)

if TYPE_CHECKING:
    from inferencecache.index import IndexEvent, TenantRules

Key = tuple[PartitionKey, bytes]
Survived = Callable[[PartitionKey, bytes, str], bool]


@dataclass(slots=True)
class Entry:
    """A replica's claim on a key."""

    token_count: int
    last_seen_ns: int
    tier: int
    uses: int = 0


class NaiveIndex:
    """What ``PrefixIndex`` does, without any of its structure."""

    def __init__(self, settings: IndexSettings, rules: "TenantRules") -> None:
        self.settings = settings
        self.rules = rules
        self.table: dict[Key, dict[str, Entry]] = {}
        self.stats: dict[tuple[str, str, str], PlainStats] = {}
        self.fences: dict[tuple[str, str, str], tuple[int, int]] = {}
        self.evictions: Counter[tuple[EvictionAlgorithm, str]] = Counter()
        self.tenant_evictions: Counter[str] = Counter()
        self.timestamps_clamped = self.fenced_updates = 0

    def report(
        self, update: PlainUpdate, now_ns: int, survived: Survived = lambda *_: False
    ) -> None:
        """Apply a whole update, then the tenant's quota, then the cap."""
        seen_ns = self._clamped(update.timestamp_ns, now_ns)
        owner = (update.tenant_id, update.model_id, update.replica_id)
        fence_ns, fence_end_ns = self.fences.get(owner, (seen_ns, now_ns))
        if seen_ns < fence_ns and now_ns < fence_end_ns:
            self.fenced_updates += 1
            return
        for prefix in update.prefixes if update.hash_scheme else ():
            self._upsert(update, prefix, seen_ns)
        if update.stats is not None:
            self.stats[owner] = PlainStats(finite(update.stats), seen_ns, seen_ns)
        self._enforce_quota(update.tenant_id, survived)
        self._enforce_cap(survived)

    def apply(self, event: "IndexEvent", now_ns: int) -> None:
        """Apply one event; adds and unknown types do nothing."""
        owner = (event.tenant_id, event.model_id, event.replica_id)
        seen_ns = self._clamped(event.timestamp_ns, now_ns)
        if event.type == "PREFIX_EVICTED":
            for key, block_hash in self._keys(*owner[:2]):
                if block_hash == event.prefix_hash and event.adapter_id in ("", key.adapter_id):
                    self.remove(key, block_hash, owner[2])
        elif event.type == "REPLICA_UPDATED" and owner in self.stats:
            self.stats[owner].last_seen_ns = seen_ns
        elif event.type == "ALL_CLEARED":
            for key, block_hash in self._keys(*owner[:2]):
                self.remove(key, block_hash, owner[2])
            self.stats.pop(owner, None)
            if self.settings.clear_fence:
                end_ns = now_ns + self.rules.ttl_ns(event.tenant_id)
                known = self.fences.get(owner, (seen_ns, end_ns))
                self.fences[owner] = (max(seen_ns, known[0]), max(end_ns, known[1]))

    def sweep(self, now_ns: int) -> None:
        """Remove what is older than its tenant's time to live."""
        for key, block_hash, replica_id, entry in list(self.records()):
            if now_ns - entry.last_seen_ns >= self.rules.ttl_ns(key.tenant_id):
                self.remove(key, block_hash, replica_id)
                if key.tenant_id != PROBE_TENANT_ID:
                    self.evictions[self.rules.algorithm(key.tenant_id), "ttl"] += 1
        for owner, record in list(self.stats.items()):
            if now_ns - record.last_seen_ns >= self.rules.ttl_ns(owner[0]):
                del self.stats[owner]
        self.fences = {who: fence for who, fence in self.fences.items() if now_ns < fence[1]}

    def credit(
        self, key: PartitionKey, block_hashes: Sequence[bytes], depths: Mapping[str, int]
    ) -> None:
        """Count one use of each block of a request, as deep as each replica matched."""
        if self.rules.algorithm(key.tenant_id) is EvictionAlgorithm.LFU:
            for replica_id, depth in depths.items():
                for block_hash in set(block_hashes[:depth]):
                    if replica_id in self.table.get((key, block_hash), {}):
                        self.table[key, block_hash][replica_id].uses += 1

    def halve_credits(self) -> None:
        """Halve every use count."""
        for _, _, _, entry in self.records():
            entry.uses //= 2

    def match_chain(
        self, key: PartitionKey, block_hashes: Sequence[bytes], counts: Sequence[int], now_ns: int
    ) -> list[Candidate]:
        """Return how much of the chain each fresh holder of its first block has without a gap."""
        found = []
        for replica_id in sorted(self._fresh(key, block_hashes[0], now_ns)):
            run: list[Entry] = []
            for block_hash in block_hashes:
                entry = self._fresh(key, block_hash, now_ns).get(replica_id)
                if entry is None:
                    break
                run.append(entry)
            tokens = min(sum(counts[: len(run)]), INT32_MAX)
            if tokens > 0:
                oldest_ns = min(entry.last_seen_ns for entry in run)
                coldest = max(entry.tier for entry in run)
                found.append((replica_id, tokens, oldest_ns, coldest, len(run)))
        return found

    def match_exact(self, key: PartitionKey, prefix_hash: bytes, now_ns: int) -> list[Candidate]:
        """Return the fresh holders of one key."""
        holders = sorted(self._fresh(key, prefix_hash, now_ns).items())
        return [(name, e.token_count, e.last_seen_ns, e.tier, 1) for name, e in holders]

    def serving_replicas(self, scope: Scope) -> list[str]:
        """Return who holds anything in the scope, fresh or not."""
        return sorted({name for key, _, name, _ in self.records() if key[:3] == scope})

    def records(self) -> Iterable[tuple[PartitionKey, bytes, str, Entry]]:
        """Yield every entry with its place."""
        for (key, block_hash), holders in self.table.items():
            for replica_id, entry in holders.items():
                yield key, block_hash, replica_id, entry

    def tenant_prefixes(self) -> Counter[str]:
        """Return the distinct keys per tenant, the reserved one included."""
        return Counter(key.tenant_id for key, _ in self.table)

    def model_prefixes(self) -> Counter[tuple[str, str]]:
        """Return the distinct keys per (tenant, model)."""
        return Counter(key[:2] for key, _ in self.table)

    def _clamped(self, timestamp_ns: int, now_ns: int) -> int:
        self.timestamps_clamped += timestamp_ns > now_ns
        return min(timestamp_ns or now_ns, now_ns)

    def _upsert(self, update: PlainUpdate, prefix: PlainPrefix, seen_ns: int) -> None:
        tier = COLDEST_TIER if prefix.tier < 0 else prefix.tier or 1
        adapter_id = prefix.adapter_id or update.adapter_id
        key = PartitionKey(update.tenant_id, update.model_id, update.hash_scheme, adapter_id)
        for block_hash, token_count in prefix.claims():
            holders = self.table.setdefault((key, block_hash), {})
            uses = holders[update.replica_id].uses if update.replica_id in holders else 0
            holders[update.replica_id] = Entry(token_count, seen_ns, tier, uses)

    def _enforce_quota(self, tenant_id: str, survived: Survived) -> None:
        quota = None if tenant_id == PROBE_TENANT_ID else self.rules.quota(tenant_id)
        keys = {k: held for k, held in self.table.items() if k[0].tenant_id == tenant_id}
        if quota is None or len(keys) <= quota:
            return
        ranked = [
            (max(e.last_seen_ns for e in held.values()), any(survived(*k, r) for r in held), k)
            for k, held in keys.items()
        ]
        for *_, victim in sorted(ranked)[: len(keys) - quota]:
            del self.table[victim]
            self.tenant_evictions[tenant_id] += 1

    def _enforce_cap(self, survived: Survived) -> None:
        cap = self.settings.entries_max
        counted = [r for r in self.records() if r[0].tenant_id != PROBE_TENANT_ID]
        if not cap or len(counted) <= cap:
            return
        ranked = [
            (
                e.uses if self._is_lfu(key) else 0,
                e.last_seen_ns,
                survived(key, h, name),
                key,
                h,
                name,
            )
            for key, h, name, e in counted
        ]
        for *_, key, block_hash, name in sorted(ranked)[: len(counted) - cap]:
            self.remove(key, block_hash, name)
            self.evictions[self.rules.algorithm(key.tenant_id), "cap"] += 1

    def _is_lfu(self, key: PartitionKey) -> bool:
        return self.rules.algorithm(key.tenant_id) is EvictionAlgorithm.LFU

    def _fresh(self, key: PartitionKey, block_hash: bytes, now_ns: int) -> dict[str, Entry]:
        ttl_ns = self.rules.ttl_ns(key.tenant_id)
        holders = self.table.get((key, block_hash), {})
        return {r: e for r, e in holders.items() if now_ns - e.last_seen_ns < ttl_ns}

    def _keys(self, tenant_id: str, model_id: str) -> list[Key]:
        return [k for k in self.table if k[0][:2] == (tenant_id, model_id)]

    def remove(self, key: PartitionKey, block_hash: bytes, replica_id: str) -> None:
        """Remove one entry, and the key with the last of them."""
        holders = self.table.get((key, block_hash), {})
        holders.pop(replica_id, None)
        if not holders:
            self.table.pop((key, block_hash), None)
