"""The functional self-test: report, find, route and forget one entry of the reserved tenant.

Theory of operation
-------------------
A probe takes the way of a real report and a real lookup through the index and the ranking, but
enters below the guard that hides the reserved tenant from clients. Its entry has a hash, a replica
and a tenant that nobody else can have, so real entries are neither seen nor moved by it:

1. *ingest*: one chain of one block is reported; asked for directly, it must be there;
2. *routing*: the ranked answer must be a PREFIX_MATCH that names the probe's replica;
3. *t2*: whoever drives the steps puts a payload into the backend's offload tier and gets it back.

Each stage needs the one before. Whatever happens, an ALL_CLEARED ends the probe. The probe never
counts as data: not for the cold-start rule, not for readiness, not in any snapshot.
"""

import hashlib
from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from inferencecache.clock import Clock
from inferencecache.index import EventType, IndexEvent, PrefixIndex, StateUpdate
from inferencecache.policy import PolicyStore
from inferencecache.service.gates import Found
from inferencecache.service.lookup_plan import make_plan
from inferencecache.service.match import Matcher, Question
from inferencecache.service.resolve import ResolvedInput
from inferencecache.service.route_request import RouteRequest
from inferencecache.types import (
    PROBE_REPLICA_PREFIX,
    PROBE_TENANT_ID,
    Candidate,
    PartitionKey,
    ReasonCode,
    StatsReport,
)

PROBE_TOKENS: Final = 16
LMCACHE: Final = "LMCache"
"""The backend type that has an offload tier to test; an empty type counts as it."""

_HASH_DOMAIN: Final = b"inferencecache.io/probe/v1\n"
_PAYLOAD_DOMAIN: Final = b"probe-payload-v1\n"


class Outcome(StrEnum):
    """How a stage ended."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


class Stage(StrEnum):
    """The stages in their order."""

    INGEST = "ingest"
    ROUTING = "routing"
    T2 = "t2"


class StageError(NamedTuple):
    """Why a stage failed.

    Attributes:
        stage: Which one.
        message: For people.
    """

    stage: Stage
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRequest:
    """What to probe.

    Attributes:
        backend: Name of the backend.
        model: Its model.
        hash_scheme: The scheme of its hashes.
        backend_type: Kind of backend; decides whether it has an offload tier.
    """

    backend: str = ""
    model: str = ""
    hash_scheme: str = ""
    backend_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What came of a probe; an empty outcome is a stage that was never reached.

    Attributes:
        backend: As asked.
        ingest: Whether a reported entry is there.
        routing: Whether a lookup is routed to it.
        t2: Whether the offload tier gives back what was put.
        errors: Why stages failed.
    """

    backend: str = ""
    ingest: str = ""
    routing: str = ""
    t2: str = ""
    errors: tuple[StageError, ...] = ()

    @property
    def all_passed(self) -> bool:
        """Whether every stage is ok or skipped; an empty outcome is neither."""
        return {self.ingest, self.routing, self.t2} <= {Outcome.OK, Outcome.SKIPPED}


class T2Cycle(NamedTuple):
    """What the offload tier is asked to keep and give back.

    Attributes:
        backend: The backend whose tier it is.
        payload: What to put.
    """

    backend: str
    payload: bytes


ProbeSteps = Generator[T2Cycle, str, ProbeResult]
"""Yields at most one cycle to run; is sent "" for success, else why it failed."""


class ProbeTarget(Protocol):
    """The use cases a probe goes through, without the guard of the reserved tenant."""

    def report(self, update: StateUpdate) -> None:
        """Take *update* in."""
        ...

    def match(self, key: PartitionKey, block_hash: bytes, tokens: int) -> list[Candidate]:
        """Return who holds the chain of that one block."""
        ...

    def route(self, request: RouteRequest) -> Found:
        """Return the ranked answer, before any gate of a policy."""
        ...

    def clear(self, event: IndexEvent) -> None:
        """Apply *event*."""
        ...


class PlaneProbeTarget:
    """The use cases of a cache plane.

    Args:
        index: Its index.
        matcher: Asks index and ranking.
        policies: Each tenant's policy.
        clock: Time of day.

    Attributes:
        reports: Updates that probes have put into the index.
    """

    __slots__ = ("_clock", "_index", "_matcher", "_policies", "reports")

    def __init__(
        self, index: PrefixIndex, matcher: Matcher, policies: PolicyStore, clock: Clock
    ) -> None:
        self._index = index
        self._matcher = matcher
        self._policies = policies
        self._clock = clock
        self.reports = 0

    def report(self, update: StateUpdate) -> None:
        """Take *update* in."""
        self.reports += 1
        self._index.report(update, self._clock.now_ns())

    def match(self, key: PartitionKey, block_hash: bytes, tokens: int) -> list[Candidate]:
        """Return who holds the chain of that one block."""
        return self._index.match_chain(key, [block_hash], [tokens], self._clock.now_ns())

    def route(self, request: RouteRequest) -> Found:
        """Return the ranked answer, before any gate of a policy."""
        policy = self._policies.resolved(request.tenant_id)
        resolved = ResolvedInput(request.block_hashes, request.block_token_counts, b"", 0)
        partition = PartitionKey(request.tenant_id, request.model_id, request.hash_scheme, "")
        plan = make_plan(partition, policy)
        return self._matcher.find(Question(plan, request, resolved, self._clock.now_ns(), None))

    def clear(self, event: IndexEvent) -> None:
        """Apply *event*."""
        self._index.apply(event, self._clock.now_ns())


class Prober:
    """Runs probes against one target.

    Args:
        target: The use cases.
    """

    __slots__ = ("_target",)

    def __init__(self, target: ProbeTarget) -> None:
        self._target = target

    def steps(self, request: ProbeRequest, *, has_t2_prober: bool = False) -> ProbeSteps:
        """Probe; two probes of one (backend, model) must not overlap.

        Args:
            request: What to probe; its three required members are not empty.
            has_t2_prober: Whether whoever drives the steps can run a :class:`T2Cycle`.
        """
        block_hash = probe_hash(request)
        replica_id = probe_replica_id(request.backend)
        try:
            failure = self._check_core(request, block_hash, replica_id)
            if failure is not None:
                return _failed(request, failure)
            if not has_t2_prober or request.backend_type not in {LMCACHE, ""}:
                return _passed(request, t2=Outcome.SKIPPED)
            reason = yield T2Cycle(request.backend, _PAYLOAD_DOMAIN + block_hash)
            if reason:
                message = f"T2 put/get cycle failed: {reason}"
                return _failed(request, StageError(Stage.T2, message))
            return _passed(request, t2=Outcome.OK)
        finally:
            self._target.clear(
                IndexEvent(
                    type=EventType.ALL_CLEARED,
                    tenant_id=PROBE_TENANT_ID,
                    model_id=request.model,
                    replica_id=replica_id,
                )
            )

    def _check_core(
        self, request: ProbeRequest, block_hash: bytes, replica_id: str
    ) -> StageError | None:
        """Return why ingest or routing fails, or None."""
        self._target.report(_update(request, block_hash, replica_id))
        key = PartitionKey(PROBE_TENANT_ID, request.model, request.hash_scheme, "")
        holders = self._target.match(key, block_hash, PROBE_TOKENS)
        if replica_id not in {holder[0] for holder in holders}:
            message = f"the reported entry was not found for replica {replica_id}"
            return StageError(Stage.INGEST, message)
        reason_code, replicas = self._target.route(_lookup(request, block_hash))
        if reason_code is not ReasonCode.PREFIX_MATCH:
            message = f"expected PREFIX_MATCH, got {reason_code.value}"
            return StageError(Stage.ROUTING, message)
        if replica_id not in {replica.replica_id for replica in replicas}:
            message = f"replica {replica_id} is not among the scored replicas"
            return StageError(Stage.ROUTING, message)
        return None


def probe_hash(request: ProbeRequest) -> bytes:
    """Return the hash of a probe's entry: 32 bytes, different for different targets."""
    digest = hashlib.sha256(_HASH_DOMAIN)
    for text in (request.hash_scheme, request.model, request.backend):
        field = text.encode()
        digest.update(len(field).to_bytes(4, "big") + field)
    return digest.digest()


def probe_replica_id(backend: str) -> str:
    """Return the replica under which a backend is probed."""
    return PROBE_REPLICA_PREFIX + backend


def _update(request: ProbeRequest, block_hash: bytes, replica_id: str) -> StateUpdate:
    update = StateUpdate(
        tenant_id=PROBE_TENANT_ID,
        model_id=request.model,
        replica_id=replica_id,
        hash_scheme=request.hash_scheme,
    )
    update.add_chain([block_hash], [PROBE_TOKENS])
    update.stats = StatsReport(hit_rate=1.0)
    return update


def _lookup(request: ProbeRequest, block_hash: bytes) -> RouteRequest:
    return RouteRequest(
        tenant_id=PROBE_TENANT_ID,
        model_id=request.model,
        hash_scheme=request.hash_scheme,
        block_hashes=[block_hash],
        block_token_counts=[PROBE_TOKENS],
    )


def _passed(request: ProbeRequest, *, t2: Outcome) -> ProbeResult:
    return ProbeResult(backend=request.backend, ingest=Outcome.OK, routing=Outcome.OK, t2=t2)


def _failed(request: ProbeRequest, error: StageError) -> ProbeResult:
    """Return the result of a probe whose stages after *error*'s were never tried."""
    stages = list(Stage)
    failed_at = stages.index(error.stage)
    outcomes = [Outcome.OK] * failed_at + [Outcome.FAILED]
    ingest, routing, t2 = outcomes + [Outcome.SKIPPED] * (len(stages) - len(outcomes))
    return ProbeResult(
        backend=request.backend, ingest=ingest, routing=routing, t2=t2, errors=(error,)
    )
