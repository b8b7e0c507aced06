"""What is counted of the control surface: who was let in, policies, TLS, offload tiers."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from itertools import islice
from typing import Final, Protocol

from inferencecache.service.offload import t2_hit_rate
from inferencecache.transport.auth import AuthResult
from inferencecache.transport.metric_catalog import MetricKind, MetricSpec
from inferencecache.transport.metric_cells import Counts, Family, LabelValues
from inferencecache.types import StatsRecord


class AuthScope(StrEnum):
    """What is counted on its own: the endpoints of the contract, and all debug pages together."""

    SNAPSHOT = "snapshot"
    POLICY = "policy"
    PROBE = "probe"
    DEBUG = "debug"
    PICKER = "picker"


def _auth_spec(scope: AuthScope, what: str) -> MetricSpec:
    return MetricSpec(
        name=f"inferencecache_{scope.value}_auth_total",
        kind=MetricKind.COUNTER,
        labels=("result",),
        help=f"Requests to {what} by how authentication ended.",
    )


AUTH_TOTALS: Final = {
    AuthScope.SNAPSHOT: _auth_spec(AuthScope.SNAPSHOT, "/snapshot"),
    AuthScope.POLICY: _auth_spec(AuthScope.POLICY, "/policy"),
    AuthScope.PROBE: _auth_spec(AuthScope.PROBE, "/probe"),
    AuthScope.DEBUG: _auth_spec(AuthScope.DEBUG, "pages under /debug"),
    AuthScope.PICKER: _auth_spec(AuthScope.PICKER, "/picker/unsuppress"),
}
POLICY_PUSHES: Final = MetricSpec(
    name="inferencecache_policy_pushes_total",
    kind=MetricKind.COUNTER,
    labels=("result",),
    help="Policy pushes by what became of them: replaced, unchanged or rejected.",
)
POLICIES: Final = MetricSpec(
    name="inferencecache_policy_tenants",
    kind=MetricKind.GAUGE,
    help="Tenants with a policy in force.",
)
QUOTAS: Final = MetricSpec(
    name="inferencecache_policy_quotas",
    kind=MetricKind.GAUGE,
    help="Tenants with a quota in force.",
)
POLICY_REVISION: Final = MetricSpec(
    name="inferencecache_policy_revision",
    kind=MetricKind.GAUGE,
    help="How often the policies in force have been replaced since the start.",
)
PROBES: Final = MetricSpec(
    name="inferencecache_probe_stages_total",
    kind=MetricKind.COUNTER,
    labels=("stage", "result"),
    help="Stages of functional self-tests by result.",
)
T2_HIT_RATE: Final = MetricSpec(
    name="inferencecache_replica_t2_hit_rate",
    kind=MetricKind.GAUGE,
    labels=("tenant_id", "replica_id"),
    help="Share of tokens asked of a replica's offload tier that it had; 0 means it is degraded.",
)
TLS_RELOADS: Final = MetricSpec(
    name="inferencecache_tls_reloads_total",
    kind=MetricKind.COUNTER,
    labels=("listener", "result"),
    help="Changed certificate files, by whether they were taken over.",
)
TLS_EXPIRY: Final = MetricSpec(
    name="inferencecache_tls_certificate_expiry_timestamp_seconds",
    kind=MetricKind.GAUGE,
    labels=("listener",),
    help="Until when the certificate that is served is valid, in Unix seconds.",
)
TOKEN_FILE_RELOADS: Final = MetricSpec(
    name="inferencecache_token_file_reloads_total",
    kind=MetricKind.COUNTER,
    labels=("result",),
    help="Changed files of bearer tokens, by whether they were taken over.",
)
ACCESS_DENIED: Final = MetricSpec(
    name="inferencecache_grpc_access_denied_total",
    kind=MetricKind.COUNTER,
    labels=("method",),
    help="gRPC requests for tenants that the client's certificate gives it no access to.",
)

CONTROL_CATALOG: Final = (
    *AUTH_TOTALS.values(),
    POLICY_PUSHES,
    POLICIES,
    QUOTAS,
    POLICY_REVISION,
    PROBES,
    T2_HIT_RATE,
    TLS_RELOADS,
    TLS_EXPIRY,
    TOKEN_FILE_RELOADS,
    ACCESS_DENIED,
)
"""All of them, in the order of the reference page."""

Numbers = Callable[[], Mapping[LabelValues, float]]


class OffloadView(Protocol):
    """What the metrics need of the index."""

    @property
    def tier2_records(self) -> Mapping[tuple[str, str, str], StatsRecord]:
        """Statistics that count queries of an offload tier, by tenant, model and replica."""
        ...


class ControlMetrics:
    """Counts on the event loop, and reads the rest when somebody scrapes.

    Args:
        index: Read at each scrape.
        replicas_max: Most replicas whose offload tier is shown.
    """

    def __init__(self, index: OffloadView, replicas_max: int) -> None:
        self._index = index
        self._replicas_max = replicas_max
        self._auth = {scope: Counts() for scope in AuthScope}
        self._probes = Counts()
        self._denied = Counts()
        self._read: dict[MetricSpec, Numbers] = {}

    def authenticated(self, scope: AuthScope, result: AuthResult) -> None:
        """Count one request."""
        self._auth[scope].add((result.value,))

    def probed(self, stage: str, outcome: str) -> None:
        """Count how one stage of a self-test ended."""
        self._probes.add((stage, outcome))

    def access_denied(self, method: str) -> None:
        """Count one refused gRPC request."""
        self._denied.add((method,))

    def read(self, spec: MetricSpec, numbers: Numbers) -> None:
        """Show what *numbers* returns as *spec* from now on."""
        self._read[spec] = numbers

    def families(self) -> list[Family]:
        """Return a copy of all the numbers."""
        return [
            *(Family(AUTH_TOTALS[scope], counts.rows()) for scope, counts in self._auth.items()),
            Family(PROBES, self._probes.rows()),
            Family(ACCESS_DENIED, self._denied.rows()),
            Family(T2_HIT_RATE, self._t2_hit_rates()),
            *(Family(spec, numbers()) for spec, numbers in self._read.items()),
        ]

    def _t2_hit_rates(self) -> dict[LabelValues, float]:
        """Return the rate by tenant and replica; the latest report counts where models differ.

        Complexity: O(replicas_max), however many tenants and replicas there are.
        """
        latest: dict[LabelValues, StatsRecord] = {}
        for key, record in islice(self._index.tier2_records.items(), self._replicas_max):
            tenant_id, _, replica_id = key
            known = latest.get((tenant_id, replica_id))
            if known is None or record.last_seen_ns > known.last_seen_ns:
                latest[tenant_id, replica_id] = record
        rates = {labels: t2_hit_rate(record.stats) for labels, record in latest.items()}
        return {labels: rate for labels, rate in rates.items() if rate is not None}
