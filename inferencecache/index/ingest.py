"""Take in one report: clamp its stamp, check it against the fence, store it, keep the limits."""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from math import isfinite

from inferencecache.index.counters import IndexCounters
from inferencecache.index.eviction import Evictor
from inferencecache.index.fences import ClearFences
from inferencecache.index.partition import Partition
from inferencecache.index.run import STORE_WORK, Incarnation
from inferencecache.index.store import StretchWriter
from inferencecache.index.tenancy import Ledger, ModelState, ScopeState
from inferencecache.index.update import DropReason, StateUpdate, Stretch
from inferencecache.settings.index import IndexSettings
from inferencecache.types import StatsRecord, StatsReport


class Ingest:
    """Applies updates to the ledger, slice by slice.

    Args:
        ledger: Where state lives.
        evictor: Enforces quota and cap once an update is stored.
        fences: Last clears of replicas.
        counters: What is dropped, clamped and fenced.
        settings: Slice size and limits.
    """

    __slots__ = ("_counters", "_evictor", "_fences", "_ledger", "_settings")

    def __init__(
        self,
        ledger: Ledger,
        evictor: Evictor,
        fences: ClearFences,
        counters: IndexCounters,
        settings: IndexSettings,
    ) -> None:
        self._ledger = ledger
        self._evictor = evictor
        self._fences = fences
        self._counters = counters
        self._settings = settings

    def report(self, update: StateUpdate, now_ns: int) -> None:
        """Apply one update in one go.

        Complexity: O(runs met + new blocks), see :class:`StretchWriter`.
        """
        seen_ns = self._admit(update, now_ns)
        if seen_ns is None:
            return
        for stretch in update.stretches:
            if self._is_storable(update, stretch):
                self._write(update, stretch, seen_ns)
        deque(self._finish_slices(update, seen_ns, self._settings.slice_blocks), maxlen=0)

    def report_slices(self, update: StateUpdate, now_ns: int) -> Iterator[None]:
        """Apply one update, yielding between bounded slices; quota and cap hold at the end.

        The update is used up on the way: freeing a million stretches at once is a long step too.

        Complexity: as :meth:`report`.
        """
        seen_ns = self._admit(update, now_ns)
        stretches = update.stretches
        stretches.reverse()
        budget = size = self._settings.slice_blocks
        while stretches:
            stretch = stretches.pop()
            is_stored = seen_ns is not None and self._is_storable(update, stretch)
            for part in stretch.parts(size) if is_stored else ():
                if budget <= 0:
                    yield
                    budget = size
                if seen_ns is None or self._is_fenced(update, seen_ns, now_ns):
                    seen_ns = None
                    break
                self._write(update, part, seen_ns)
                budget -= len(part.hashes) + STORE_WORK
            budget -= 1
            if budget <= 0 and stretches:
                yield
                budget = size
        if seen_ns is not None:
            yield from self._finish_slices(update, seen_ns, budget)

    def clamp(self, timestamp_ns: int, now_ns: int) -> int:
        """Return a stamp that is never in the future; 0 means now.

        Complexity: O(1).
        """
        if timestamp_ns == 0:
            return now_ns
        if timestamp_ns > now_ns:
            self._counters.timestamps_clamped += 1
            return now_ns
        return timestamp_ns

    def _admit(self, update: StateUpdate, now_ns: int) -> int | None:
        """Count the update; return its stamp, or None if it is not to be stored."""
        counters = self._counters
        counters.updates += 1
        update.close()
        if update.drops:
            counters.drops.update(update.drops)
        seen_ns = self.clamp(update.timestamp_ns, now_ns)
        names = (update.tenant_id, update.model_id, update.replica_id)
        if any_too_long((*names, update.hash_scheme), self._settings.identifier_bytes_max):
            counters.drops[DropReason.IDENTIFIER_TOO_LONG] += 1
            return None
        return None if self._is_fenced(update, seen_ns, now_ns) else seen_ns

    def _is_fenced(self, update: StateUpdate, seen_ns: int, now_ns: int) -> bool:
        names = (update.tenant_id, update.model_id, update.replica_id)
        if not self._fences.blocks(names, seen_ns, now_ns):
            return False
        self._counters.fenced_updates += 1
        self._counters.drops[DropReason.BEFORE_CLEAR] += update.entries
        return True

    def _is_storable(self, update: StateUpdate, stretch: Stretch) -> bool:
        adapter_id = stretch.adapter_id or update.adapter_id
        if not update.hash_scheme:
            reason = DropReason.EMPTY_HASH_SCHEME
        elif adapter_id and is_too_long(adapter_id, self._settings.identifier_bytes_max):
            reason = DropReason.IDENTIFIER_TOO_LONG
        else:
            return True
        self._counters.drops[reason] += len(stretch.hashes)
        return False

    def _finish_slices(self, update: StateUpdate, seen_ns: int, budget: int) -> Iterator[None]:
        if update.stats is not None:
            self._store_stats(update, update.stats, seen_ns)
        return self._evictor.limit_slices(update.tenant_id, budget)

    def _write(self, update: StateUpdate, stretch: Stretch, seen_ns: int) -> None:
        """Resolve names anew for each slice: what stood here before may be gone since."""
        ledger = self._ledger
        model = ledger.model(update.tenant_id, update.model_id)
        adapter_id = stretch.adapter_id or update.adapter_id
        partition = _partition(ledger, model, update.hash_scheme, adapter_id)
        incarnation = model.incarnations.get(update.replica_id)
        if incarnation is None:
            incarnation = model.incarnations[update.replica_id] = Incarnation(update.replica_id)
        limit = self._settings.identifier_bytes_max
        writer = StretchWriter(partition, incarnation, seen_ns, stretch.tier, limit)
        writer.write(stretch.hashes, stretch.token_counts, stretch.packed)
        if writer.dropped:
            self._counters.drops[DropReason.IDENTIFIER_TOO_LONG] += writer.dropped
            partition.retire(incarnation)

    def _store_stats(self, update: StateUpdate, stats: StatsReport, seen_ns: int) -> None:
        known = self._ledger.find_model(update.tenant_id, update.model_id)
        is_new = known is None or update.replica_id not in known.stats
        if is_new and self._ledger.stats_records >= self._settings.stats_records_max:
            self._counters.drops[DropReason.STATS_LIMIT] += 1
            return
        model = self._ledger.model(update.tenant_id, update.model_id)
        record = StatsRecord(update.replica_id, self._sound(stats), seen_ns, update.model_id)
        model.tenant.put_stats(model, record)

    def _sound(self, stats: StatsReport) -> StatsReport:
        """Return *stats* without ratios that are no number and a version that is no version."""
        is_version = not is_too_long(stats.client_version, self._settings.identifier_bytes_max)
        if not is_version:
            self._counters.drops[DropReason.IDENTIFIER_TOO_LONG] += 1
        if is_version and isfinite(stats.hit_rate) and isfinite(stats.pressure):
            return stats
        return replace(
            stats,
            hit_rate=stats.hit_rate if isfinite(stats.hit_rate) else 0.0,
            pressure=stats.pressure if isfinite(stats.pressure) else 0.0,
            client_version=stats.client_version if is_version else "",
        )


def _partition(ledger: Ledger, model: ModelState, hash_scheme: str, adapter_id: str) -> Partition:
    scope = model.scopes.get(hash_scheme)
    if scope is None:
        scope = model.scopes[hash_scheme] = ScopeState(model, hash_scheme)
    partition = scope.partitions.get(adapter_id)
    if partition is None:
        partition = scope.partitions[adapter_id] = Partition(scope, adapter_id, ledger)
    return partition


def is_too_long(name: str, limit_bytes: int) -> bool:
    """Tell whether a name takes more than *limit_bytes* in UTF-8.

    Complexity: O(1) for names well below the limit.
    """
    return len(name) * 4 > limit_bytes and len(name.encode()) > limit_bytes


def any_too_long(names: tuple[str, ...], limit_bytes: int) -> bool:
    """Tell whether one of *names* takes more than *limit_bytes* in UTF-8.

    Complexity: O(1) for names well below the limit.
    """
    if len("".join(names)) * 4 <= limit_bytes:
        return False
    return any(is_too_long(name, limit_bytes) for name in names)
