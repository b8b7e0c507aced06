"""Count a client's lookups in Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from inferencecache.clock import NS_PER_S
from inferencecache.transport.client_values import FailOpenCause
from inferencecache.types import ReasonCode

_BUCKETS_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class PrometheusClientMetrics:
    """The client's Metrics protocol on a Prometheus registry.

    Args:
        registry: Where the series are registered; one client family per registry.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._lookups = Counter(
            "inferencecache_client_lookups_total",
            "Lookups by the reason code the gateway acted on.",
            ["reason_code"],
            registry=registry,
        )
        self._seconds = Histogram(
            "inferencecache_client_lookup_seconds",
            "Time a gateway waited for a lookup.",
            buckets=_BUCKETS_SECONDS,
            registry=registry,
        )
        self._missing = Counter(
            "inferencecache_client_hints_missing_total",
            "Lookups that ended without a hint, by cause.",
            ["cause"],
            registry=registry,
        )
        self._errors = Counter(
            "inferencecache_client_configuration_errors_total",
            "Answers that say gateway and producers disagree about a key.",
            ["reason_code"],
            registry=registry,
        )

    def lookup_finished(self, reason_code: ReasonCode, duration_ns: int) -> None:
        """Count one lookup and how long the caller waited, in nanoseconds."""
        self._lookups.labels(reason_code.value).inc()
        self._seconds.observe(duration_ns / NS_PER_S)

    def hint_missing(self, cause: FailOpenCause) -> None:
        """Count a lookup that ended without a hint for *cause*."""
        self._missing.labels(cause.value).inc()

    def configuration_error(self, reason_code: ReasonCode) -> None:
        """Count an answer that says gateway and producers disagree about a key."""
        self._errors.labels(reason_code.value).inc()
