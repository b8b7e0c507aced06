"""The real service layer as a target of scenarios: real use cases, policy, messages, snapshot."""

from inferencecache.clock import NS_PER_S, NS_PER_US, ManualClock
from inferencecache.errors import InvalidRequestError
from inferencecache.index import PrefixIndex
from inferencecache.policy import PolicyStore, decode_policy_push
from inferencecache.service import CachePlane, PlaneParts
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.lookup import LookupSettings
from inferencecache.settings.policy import PolicySettings
from inferencecache.transport import convert
from inferencecache.transport.read_lookup import read_route_request
from inferencecache.v1alpha1 import inferencecache_pb2 as wire

HTTP_STORED = 204
HTTP_REFUSED = 400

Json = dict[str, object]


class PlaneTarget:
    """A cache plane with a scripted clock; nothing happens in it that no step asks for.

    Args:
        config: ``ttl_s``, ``max_entries``, ``engine_block_size`` and optionally ``clear_fence``,
            which is off if absent.
    """

    def __init__(self, config: Json) -> None:
        index_settings = IndexSettings(
            entries_max=config["max_entries"],
            ttl_ns=config["ttl_s"] * NS_PER_S,
            clear_fence=config.get("clear_fence", False),
        )
        policies = PolicyStore(PolicySettings(), index_settings.ttl_ns)
        self._clock = ManualClock()
        self.plane = CachePlane(
            PlaneParts(
                index=PrefixIndex(index_settings, policies),
                policies=policies,
                clock=self._clock,
                lookup=LookupSettings(block_size_tokens=config["engine_block_size"]),
            )
        )

    def set_time(self, now_us: int) -> None:
        """Set the clock, Unix microseconds."""
        self._clock.set_ns(now_us * NS_PER_US)

    def report(self, update: wire.CacheStateUpdate) -> None:
        """Apply one message of a report stream."""
        parsed = convert.state_update(update.SerializeToString())
        assert parsed is not None
        self.plane.report(parsed)

    def publish(self, event: wire.CacheEvent) -> None:
        """Apply an event, unless its type is one the index never sees."""
        index_event = convert.index_event(event)
        if index_event is not None:
            self.plane.publish(index_event)

    def push_policy(self, body: bytes) -> int:
        """Store a policy push, or refuse it and change nothing."""
        try:
            snapshot = decode_policy_push(body)
        except InvalidRequestError:
            return HTTP_REFUSED
        self.plane.set_policy(snapshot)
        return HTTP_STORED

    def sweep(self) -> None:
        """Sweep once."""
        self.plane.sweep()

    def look_up(self, request: wire.LookupRouteRequest) -> wire.LookupRouteResponse:
        """Answer a lookup."""
        question = read_route_request(request.SerializeToString())
        assert question is not None
        answer = self.plane.lookup_route(question)
        return convert.route_response(answer)

    def cache_state(self, request: wire.GetCacheStateRequest) -> wire.GetCacheStateResponse:
        """Answer GetCacheState."""
        state = self.plane.cache_state(request.tenant_id, request.model_id)
        steps = convert.state_response_steps(state)
        while True:
            try:
                next(steps)
            except StopIteration as finished:
                data = finished.value.SerializeToString()
                return wire.GetCacheStateResponse.FromString(data)

    def snapshot(self) -> bytes:
        """Return the body of /snapshot."""
        return self.plane.snapshot_body().encode()

    def counts(self) -> Json:
        """Return what the index holds and what it evicted."""
        index = self.plane.index
        evictions = index.counters.evictions.items()
        return {
            "entries": index.entries,
            "prefixes": index.prefixes,
            "tenant_prefixes": {k: n for k, n in index.tenant_prefixes().items() if n},
            "evictions": {f"{how}/{why}": n for (how, why), n in evictions if n},
            "tenant_evictions": {k: n for k, n in index.counters.tenant_evictions.items() if n},
        }
