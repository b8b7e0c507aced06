"""Read the index's own counters when somebody scrapes; nothing is pushed while it works."""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from inferencecache.index import IndexCounters
from inferencecache.transport.metric_catalog import (
    INDEX_ENTRIES,
    INDEX_EVICTIONS,
    INDEX_HELD_ENTRIES,
    INDEX_PREFIXES,
    INGEST_CLAMPED,
    INGEST_DROPPED,
    INGEST_FENCED,
    TENANT_EVICTIONS,
)
from inferencecache.transport.metric_cells import Family
from inferencecache.transport.metric_labels import BoundedLabels, LabelledTotals

QUOTA_REASON: Final = "over_entries"


class IndexView(Protocol):
    """What the metrics need of the index."""

    @property
    def counters(self) -> IndexCounters:
        """What it has counted."""
        ...

    @property
    def entries(self) -> int:
        """Entries held, one per replica and prefix."""
        ...

    @property
    def prefixes(self) -> int:
        """Distinct prefixes held."""
        ...

    @property
    def prefixes_by_model(self) -> Mapping[str, int]:
        """Distinct prefixes per model; drained models stay with 0."""
        ...

    def reclaim_slices(self) -> Iterator[None]:
        """Free what cleared replicas held, so that key counts are of what is held."""
        ...

    def has_tenant(self, tenant_id: str) -> bool:
        """Tell whether anything is held for a tenant."""
        ...


class IndexMetrics:
    """The families that come from the index.

    Args:
        index: Where the numbers are.
        model_labels: Decides which models get a label of their own.
        tenant_labels: Decides which tenants do.
    """

    __slots__ = ("_index", "_model_labels", "_tenant_labels", "_tenant_totals")

    def __init__(
        self, index: IndexView, model_labels: BoundedLabels, tenant_labels: BoundedLabels
    ) -> None:
        self._index = index
        self._model_labels = model_labels
        self._tenant_labels = tenant_labels
        self._tenant_totals = LabelledTotals(tenant_labels)

    def families(self) -> list[Family]:
        """Return a copy of the numbers."""
        counters = self._index.counters
        models = self._model_labels.fold(self._index.prefixes_by_model)
        tenants = self._tenants(counters.tenant_evictions)
        return [
            Family(INGEST_DROPPED, {(why.value,): count for why, count in counters.drops.items()}),
            Family(INGEST_FENCED, {(): counters.fenced_updates}),
            Family(INGEST_CLAMPED, {(): counters.timestamps_clamped}),
            Family(INDEX_ENTRIES, {(model,): count for model, count in models.items()}),
            Family(INDEX_PREFIXES, {(): self._index.prefixes}),
            Family(INDEX_HELD_ENTRIES, {(): self._index.entries}),
            Family(
                INDEX_EVICTIONS,
                {(key[0].value, key[1].value): count for key, count in counters.evictions.items()},
            ),
            Family(
                TENANT_EVICTIONS,
                {(tenant, QUOTA_REASON): count for tenant, count in tenants.items()},
            ),
        ]

    def _tenants(self, totals: Mapping[str, int]) -> dict[str, int]:
        """Return what quotas removed, by the label of the tenant; those gone make room."""
        present = {tenant_id: int(self._index.has_tenant(tenant_id)) for tenant_id in totals}
        self._tenant_totals.forget(self._tenant_labels.make_room(present))
        return self._tenant_totals.add_up(totals)
