"""The client without a server: same queries, same results, a function call in between.

Queries and reports pass through the wire's messages, so that what fits them and what is made of it
is decided in one place.

The plane is made for one event loop or one thread, so these objects belong to the thread that
owns it.
"""

from collections.abc import Container, Iterable

from inferencecache.client.local_plane import local_plane
from inferencecache.client.lookup_core import LookupCore
from inferencecache.client.notices import Metrics, NoMetrics, OnWarning, log_warning
from inferencecache.client.result import LookupResult
from inferencecache.clock import NS_PER_S
from inferencecache.service import CachePlane, RouteAnswer
from inferencecache.settings.client import ClientSettings
from inferencecache.transport import convert
from inferencecache.transport.client_codec import encode_removal, encode_update
from inferencecache.transport.client_values import (
    CacheUpdate,
    FailOpenCause,
    LookupAnswer,
    LookupFailure,
    LookupOutcome,
    LookupQuery,
    Removal,
    ReplicaHint,
    ReplicaRef,
)
from inferencecache.transport.lookup_client import encoded
from inferencecache.transport.read_lookup import read_route_request
from inferencecache.types import CacheTier

_WIRE_TIERS = frozenset({CacheTier.T1, CacheTier.T2, CacheTier.T3})


class InProcessClient:
    """Ask a plane in this process; everything else as with :class:`CacheClient`.

    Args:
        plane: The plane, for example a server's; None makes one of its own.
        settings: Deadline and bound on warnings.
        metrics: Where lookups are counted.
        on_warning: Receives each wrong tenant, model or hash scheme once.
    """

    def __init__(
        self,
        plane: CachePlane | None = None,
        *,
        settings: ClientSettings | None = None,
        metrics: Metrics | None = None,
        on_warning: OnWarning = log_warning,
    ) -> None:
        self.plane = plane or local_plane()
        self._core = LookupCore(
            settings or ClientSettings(), metrics or NoMetrics(), on_warning, self.plane.clock
        )

    def lookup(
        self,
        query: LookupQuery,
        *,
        deadline_ms: float | None = None,
        eligible: Container[str] | None = None,
    ) -> LookupResult:
        """Return a hint or the reason for none.

        Args:
            query: What to ask.
            deadline_ms: Longest work in milliseconds; None takes the setting.
            eligible: Replicas the caller can use now; None accepts every one.
        """
        started_ns = self._core.begin()
        outcome = self._ask(query, started_ns, self._core.timeout_s(deadline_ms))
        return self._core.finish(started_ns, query, outcome, eligible)

    def choose(
        self,
        query: LookupQuery,
        *,
        deadline_ms: float | None = None,
        eligible: Container[str] | None = None,
    ) -> ReplicaHint | None:
        """Return the best replica, or None to route by the caller's own policy.

        Args:
            query: What to ask.
            deadline_ms: Longest work in milliseconds; None takes the setting.
            eligible: Replicas the caller can use now; None accepts every one.
        """
        return self.lookup(query, deadline_ms=deadline_ms, eligible=eligible).best()

    def reporter(self) -> "InProcessReporter":
        """Return a reporter for the same plane."""
        return InProcessReporter(self.plane)

    def _ask(self, query: LookupQuery, started_ns: int, timeout_s: float) -> LookupOutcome:
        data = encoded(query, timeout_s)
        if isinstance(data, LookupFailure):
            return data
        request = read_route_request(data, self.plane.blocks_read_max)
        if request is None:
            return LookupFailure(FailOpenCause.INVALID_QUERY, "the query does not parse")
        deadline_ns = started_ns + round(timeout_s * NS_PER_S)
        return _answer(self.plane.lookup_route(request, deadline_ns))


class InProcessReporter:
    """Report to a plane in this process; a report has arrived when the call returns.

    Args:
        plane: The plane.
    """

    def __init__(self, plane: CachePlane) -> None:
        self._plane = plane

    def report(self, update: CacheUpdate) -> None:
        """Apply *update*.

        Raises:
            InvalidRequestError: *update* does not fit the wire.
        """
        state = convert.state_update(encode_update(update).SerializeToString())
        if state is not None:
            self._plane.report(state)

    def evict(
        self,
        replica: ReplicaRef,
        prefix_hashes: Iterable[bytes],
        *,
        adapter_id: str = "",
        timestamp_ns: int = 0,
    ) -> None:
        """Remove blocks that *replica* dropped; arguments as for :meth:`Reporter.evict`.

        Raises:
            InvalidRequestError: A value does not fit the wire.
        """
        for prefix_hash in prefix_hashes:
            self._remove(Removal(replica, prefix_hash, adapter_id, timestamp_ns))

    def clear(self, replica: ReplicaRef, *, timestamp_ns: int = 0) -> None:
        """Remove everything of *replica* in its tenant and model.

        Raises:
            InvalidRequestError: A value does not fit the wire.
        """
        self._remove(Removal(replica, None, "", timestamp_ns))

    def flush(self) -> None:
        """Return at once: nothing is ever under way."""

    def _remove(self, removal: Removal) -> None:
        event = convert.index_event(encode_removal(removal))
        if event is not None:
            self._plane.publish(event)


def _answer(answer: RouteAnswer) -> LookupAnswer:
    hints = tuple(
        ReplicaHint(
            replica.replica_id,
            replica.score,
            replica.matched_tokens,
            replica.estimated_cache_hit_prob,
            CacheTier(replica.tier) if replica.tier in _WIRE_TIERS else CacheTier.UNSPECIFIED,
        )
        for replica in answer.replicas
    )
    return LookupAnswer(
        reason_code=answer.reason_code.value,
        hints=hints,
        adapter_id=answer.adapter_id,
        token_ids=tuple(answer.token_ids),
        latency_us=answer.lookup_latency_us,
    )
