"""The server's metrics: counted on the event loop, written out as Prometheus text."""

import asyncio
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from inferencecache.clock import Clock
from inferencecache.service import FailOpen
from inferencecache.settings.metrics import MetricsSettings
from inferencecache.transport import metric_catalog as catalog
from inferencecache.transport.index_metrics import IndexMetrics, IndexView
from inferencecache.transport.lookup_metrics import LookupMetrics
from inferencecache.transport.metric_cells import Counts, Durations, Family, to_prometheus
from inferencecache.transport.metric_labels import BoundedLabels
from inferencecache.transport.system_clock import SystemClock


class ServerMetrics:
    """Everything one server counts, on a registry of its own.

    Args:
        settings: Bounds of the page.
        index: Read at each scrape.
        clock: Tells how long a label has been idle; None takes the system's.

    Attributes:
        lookups: Counts LookupRoute calls.
    """

    def __init__(
        self, settings: MetricsSettings, index: IndexView, clock: Clock | None = None
    ) -> None:
        clock = clock or SystemClock()
        models = BoundedLabels(settings, lambda model: model in index.prefixes_by_model, clock)
        tenants = BoundedLabels(settings, index.has_tenant, clock)
        self._model_labels = models
        self._view = index
        self._lag_max_ns = settings.ingest_lag_max_ns
        self.lookups = LookupMetrics(models)
        self._index = IndexMetrics(index, models, tenants)
        self._gauges: dict[catalog.MetricSpec, float] = {
            catalog.SERVER_UP: 0,
            catalog.GRPC_TLS_ENABLED: 0,
        }
        self._plain = {
            catalog.INGEST_UPDATES: Counts(),
            catalog.INGEST_ENTRIES: Counts(),
        }
        for counts in self._plain.values():
            counts.add(amount=0)
        self._labelled = {
            catalog.UNPARSABLE_MESSAGES: Counts(),
            catalog.HANDLER_ERRORS: Counts(),
            catalog.INGEST_EVENTS: Counts(),
        }
        self._fail_opens: Mapping[FailOpen, int] = {}
        self._durations = {
            spec: Durations(spec.buckets_seconds)
            for spec in (catalog.INGEST_LAG, catalog.SWEEP_DURATION, catalog.LOOP_LAG)
        }
        self._registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        self._sources: list[Callable[[], list[Family]]] = []
        self._page = _Page()
        self._rendering = asyncio.Lock()
        self._registry.register(self._page)

    def set_up(self, *, is_up: bool) -> None:
        """Say whether the server is up."""
        self._gauges[catalog.SERVER_UP] = int(is_up)

    def set_grpc_tls(self, *, is_enabled: bool) -> None:
        """Say whether the gRPC listener serves TLS."""
        self._gauges[catalog.GRPC_TLS_ENABLED] = int(is_enabled)

    def update_received(self, entries: int, lag_ns: int | None) -> None:
        """Count one update and the *entries* it carried; one with a timestamp also by its lag."""
        if lag_ns is not None:
            counted_ns = min(max(lag_ns, 0), self._lag_max_ns)
            self._durations[catalog.INGEST_LAG].observe(counted_ns)
        self._plain[catalog.INGEST_UPDATES].add()
        self._plain[catalog.INGEST_ENTRIES].add(amount=entries)

    def event_received(self, kind: str) -> None:
        """Count one event; *kind* is its type's name on the wire."""
        self._labelled[catalog.INGEST_EVENTS].add((kind,))

    def message_unparsable(self, method: str) -> None:
        """Count a message to *method* that could not be parsed."""
        self._labelled[catalog.UNPARSABLE_MESSAGES].add((method,))

    def handler_failed(self, method: str) -> None:
        """Count a call to *method* that ended in an unexpected exception."""
        self._labelled[catalog.HANDLER_ERRORS].add((method,))

    def watch_fail_opens(
        self, fail_opens: Mapping[FailOpen, int], chains_cut: Callable[[], int]
    ) -> None:
        """Show lookups whose input could not be used, by cause, or not to its end, from now on."""
        self._fail_opens = fail_opens
        self.add_source(lambda: [Family(catalog.LOOKUP_CHAINS_CUT, {(): chains_cut()})])

    def add_source(self, families: Callable[[], list[Family]]) -> None:
        """Show what *families* returns, too, from now on."""
        self._sources.append(families)

    def sweep_finished(self, duration_ns: int) -> None:
        """Count one sweep."""
        self._durations[catalog.SWEEP_DURATION].observe(duration_ns)

    def loop_lagged(self, lag_ns: int) -> None:
        """Count one measurement of the event loop's lag."""
        self._durations[catalog.LOOP_LAG].observe(lag_ns)

    def families(self) -> list[Family]:
        """Return a copy of all the server's own numbers; cheap, for the event loop."""
        self.lookups.forget(self._model_labels.make_room(self._view.prefixes_by_model))
        return [
            *(Family(spec, {(): value}) for spec, value in self._gauges.items()),
            *self.lookups.families(),
            Family(
                catalog.LOOKUP_FAIL_OPEN,
                {(cause.value,): count for cause, count in self._fail_opens.items()},
            ),
            *(Family(spec, cell.rows()) for spec, cell in self._labelled.items()),
            *(Family(spec, cell.rows()) for spec, cell in self._plain.items()),
            *self._index.families(),
            *(Family(spec, spreads={(): cell.spread()}) for spec, cell in self._durations.items()),
            *(family for families in self._sources for family in families()),
        ]

    async def render(self) -> bytes:
        """Return the metrics page.

        The numbers are copied here; making text of a page with a thousand models takes far longer
        than the event loop may be held, so a thread does that, one page at a time. Keys of replicas
        that were cleared go first: the page shows what is held.
        """
        async with self._rendering:
            for _ in self._view.reclaim_slices():
                await asyncio.sleep(0)
            self._page.families = self.families()
            return await asyncio.to_thread(generate_latest, self._registry)


class _Page(Collector):
    """Hands the copied numbers to the registry."""

    def __init__(self) -> None:
        self.families: list[Family] = []

    def collect(self) -> Iterator[Metric]:
        """Yield the families that have anything to show."""
        for family in self.families:
            if family.numbers or family.spreads:
                yield to_prometheus(family)
