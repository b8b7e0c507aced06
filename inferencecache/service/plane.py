"""The cache plane: everything the transports can ask of it, in one object.

Every call is synchronous and, but for those that end in ``_slices`` or ``_steps``, complete when it
returns. What works in slices must run to its end; other calls may come between two slices.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from inferencecache.clock import Clock
from inferencecache.index import CacheState, IndexEvent, PrefixIndex, StateUpdate
from inferencecache.policy import (
    PolicyLayer,
    PolicyLayers,
    PolicySnapshot,
    PolicyStore,
    Replacement,
)
from inferencecache.service.match import Matcher
from inferencecache.service.resolve import FailOpen, InputResolver
from inferencecache.service.route import LookupObserver, LookupRoute, RouteParts, RouteSteps
from inferencecache.service.route_answer import RouteAnswer
from inferencecache.service.route_request import RouteRequest
from inferencecache.service.route_trace import RouteTrace
from inferencecache.service.snapshot_body import snapshot_body
from inferencecache.service.tokenizer import Tokenizer
from inferencecache.settings.lookup import LookupSettings
from inferencecache.settings.ranking import RankingSettings
from inferencecache.types import PROBE_TENANT_ID, ReasonCode


class IgnoreLookups:
    """An observer for those who count nothing."""

    def lookup_finished(
        self, model_id: str, reason_code: ReasonCode, duration_ns: int, *, hint_used: bool
    ) -> None:
        """Take no note."""


class ReplicaObserver(Protocol):
    """Told of each sign of life of a replica."""

    def saw(self, replica_id: str, now_ns: int) -> None:
        """Take note of one, at a monotonic time."""
        ...


class IgnoreReplicas:
    """An observer for those who do not ask who has ever said anything."""

    def saw(self, replica_id: str, now_ns: int) -> None:
        """Take no note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneParts:
    """What a cache plane is made of.

    Attributes:
        index: The prefix index.
        policies: Each tenant's policy; the index asks the same one.
        clock: Time of day and monotonic time.
        lookup: Settings of LookupRoute's input.
        ranking: The ranker's knobs.
        observer: Told about each lookup once.
        tokenizer: For prompt texts; without one they fail open.
        replicas: Told who reports.
    """

    index: PrefixIndex
    policies: PolicyStore
    clock: Clock
    lookup: LookupSettings = field(default_factory=LookupSettings)
    ranking: RankingSettings = field(default_factory=RankingSettings)
    observer: LookupObserver = field(default_factory=IgnoreLookups)
    tokenizer: Tokenizer | None = None
    replicas: ReplicaObserver = field(default_factory=IgnoreReplicas)


_NO_STATE: Final = CacheState(replicas=(), total_prefixes=0)


class CachePlane:
    """Takes reports and events, answers lookups and shows its state.

    Args:
        parts: Its collaborators.

    Attributes:
        answer_sent: Answers a request that carries its hashes, and not too many, at once, and gives
            None for any other: :meth:`~inferencecache.service.route.LookupRoute.answer_sent`
            itself, for every lookup passes here.
        blocks_read_max: Blocks of a lookup's chain that are worth reading: one more than count, so
            that a longer chain is known as one.
        lookup_settings: Settings of LookupRoute's input.
    """

    __slots__ = (
        "_replicas",
        "_route",
        "answer_sent",
        "blocks_read_max",
        "clock",
        "index",
        "lookup_settings",
        "observer",
        "policies",
        "policy_layers",
    )

    def __init__(self, parts: PlaneParts) -> None:
        self.index = parts.index
        self.policies = parts.policies
        self.policy_layers = PolicyLayers(parts.policies)
        self.clock = parts.clock
        self.observer = parts.observer
        self._replicas = parts.replicas
        self.lookup_settings = lookup = parts.lookup
        self.blocks_read_max = lookup.chain_blocks_max + 1
        self._route = LookupRoute(
            RouteParts(
                matcher=Matcher(parts.index, parts.ranking),
                resolver=InputResolver(lookup, parts.clock, parts.tokenizer),
                policies=parts.policies,
                clock=parts.clock,
                observer=parts.observer,
                tokenize_timeout_ns=lookup.tokenize_timeout_ns,
                chain_blocks_max=lookup.chain_blocks_max,
                match_slice_blocks=lookup.match_slice_blocks,
            )
        )
        self.answer_sent = self._route.answer_sent

    @property
    def fail_opens(self) -> dict[FailOpen, int]:
        """Lookups whose input could not be used, by reason."""
        return self._route.fail_opens

    @property
    def chains_cut(self) -> int:
        """Lookups of chains so long that their end was ignored."""
        return self._route.chains_cut

    def lookup_route_steps(
        self,
        request: RouteRequest,
        deadline_ns: int | None = None,
        trace: RouteTrace | None = None,
        started_ns: int | None = None,
    ) -> RouteSteps:
        """Answer *request* in slices.

        Args:
            request: The question.
            deadline_ns: Monotonic time by which the caller wants the answer, or None.
            trace: Filled with the reasons when given.
            started_ns: Monotonic time at which the question came, None for now.
        """
        return self._route.steps(request, deadline_ns, trace, started_ns)

    def lookup_deadline_ns(
        self, request: RouteRequest, deadline_ns: int | None, started_ns: int
    ) -> int | None:
        """Return the tighter of a caller's deadline and the policy's; None without either.

        Args:
            request: The question, of which only the names matter.
            deadline_ns: Monotonic time by which the caller wants the answer, or None.
            started_ns: Monotonic time at which the question came.
        """
        return self._route.deadline_of(request, deadline_ns, started_ns)

    def turn_away(self, request: RouteRequest, started_ns: int, *, is_late: bool) -> RouteAnswer:
        """Answer a lookup that is not looked into because others come first.

        Args:
            request: The question, of which only the names matter.
            started_ns: Monotonic time at which it came.
            is_late: Whether its time ran out while it waited; else too many wait already.
        """
        return self._route.turn_away(request, started_ns, is_late=is_late)

    def lookup_route(
        self,
        request: RouteRequest,
        deadline_ns: int | None = None,
        trace: RouteTrace | None = None,
    ) -> RouteAnswer:
        """Answer *request* at once; a prompt whose tokens would have to be waited for times out.

        Args:
            request: The question.
            deadline_ns: Monotonic time by which the caller wants the answer, or None.
            trace: Filled with the reasons when given.
        """
        steps = self._route.steps(request, deadline_ns, trace)
        try:
            while next(steps) is None:
                pass
            steps.send(True)  # noqa: FBT003 - there is nobody to wait
        except StopIteration as finished:
            answer: RouteAnswer = finished.value
            return answer
        raise AssertionError("a lookup that is told to give up ends")

    def report(self, update: StateUpdate) -> None:
        """Apply *update* whole, then quota and cap; updates of the reserved tenant are skipped."""
        if update.tenant_id != PROBE_TENANT_ID:
            self._saw(update.replica_id)
            self.index.report(update, self.clock.now_ns())

    def report_slices(self, update: StateUpdate) -> Iterator[None]:
        """Apply *update* like :meth:`report`, giving way between bounded slices."""
        if update.tenant_id == PROBE_TENANT_ID:
            return iter(())
        self._saw(update.replica_id)
        return self.index.report_slices(update, self.clock.now_ns())

    def publish(self, event: IndexEvent) -> None:
        """Apply *event*; events of the reserved tenant are skipped."""
        if event.tenant_id != PROBE_TENANT_ID:
            self._saw(event.replica_id)
            self.index.apply(event, self.clock.now_ns())

    def _saw(self, replica_id: str) -> None:
        if self.index.takes_name(replica_id):
            self._replicas.saw(replica_id, self.clock.monotonic_ns())

    def cache_state(self, tenant_id: str, model_id: str) -> CacheState:
        """Return what is known of one (tenant, model); both are literal, empty included."""
        if tenant_id == PROBE_TENANT_ID:
            return _NO_STATE
        return self.index.cache_state(tenant_id, model_id)

    def cache_state_slices(
        self, tenant_id: str, model_id: str
    ) -> Generator[None, None, CacheState]:
        """Return what :meth:`cache_state` does, giving way between bounded slices."""
        if tenant_id == PROBE_TENANT_ID:
            return _NO_STATE
        return (yield from self.index.cache_state_slices(tenant_id, model_id))

    def snapshot_body(self) -> str:
        """Return the JSON body of ``/snapshot``."""
        return snapshot_body(self.index.snapshot())

    def sweep(self) -> None:
        """Remove everything that has outlived its TTL."""
        self.index.sweep(self.clock.now_ns())

    def sweep_slices(self) -> Iterator[None]:
        """Remove what :meth:`sweep` does, giving way between bounded slices."""
        return self.index.sweep_slices(self.clock.now_ns())

    def set_policy(
        self, snapshot: PolicySnapshot, layer: PolicyLayer = PolicyLayer.PUSH
    ) -> Replacement:
        """Replace every policy and quota of *layer* by those of *snapshot*.

        Args:
            snapshot: All that the source says now.
            layer: The source; what the other one says stays.

        Returns:
            What the source said before and does not say any more.
        """
        return self.policy_layers.replace(layer, snapshot)
