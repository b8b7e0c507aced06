"""From a resolved input to scored replicas, or to the reason why there are none."""

from collections.abc import Sequence
from typing import NamedTuple

from inferencecache.index import PrefixIndex
from inferencecache.policy import ResolvedPolicy
from inferencecache.ranking import (
    RankedReplica,
    RankInputs,
    affinity_seed,
    explain_matches,
    explain_tenant_hot,
    pick_affinity,
    rank_matches,
    rank_tenant_hot,
)
from inferencecache.service.gates import NOTHING, Found
from inferencecache.service.resolve import ResolvedInput, chain_fault
from inferencecache.service.route_request import RouteRequest
from inferencecache.service.route_trace import RouteTrace
from inferencecache.settings.ranking import RankingSettings
from inferencecache.types import Candidate, EvictionAlgorithm, PartitionKey, ReasonCode, Scope


class Question(NamedTuple):
    """A lookup whose input is known.

    Attributes:
        request: As asked.
        resolved: The input that counts.
        policy: The tenant's.
        scope: The engine domain asked about.
        partition: The part of the index asked about.
        now_ns: Unix time, nanoseconds.
        trace: Filled when given.
    """

    request: RouteRequest
    resolved: ResolvedInput
    policy: ResolvedPolicy
    scope: Scope
    partition: PartitionKey
    now_ns: int
    trace: RouteTrace | None

    def has_contract_keys(self) -> bool:
        """Return whether tenant, model and scheme are all set."""
        return all(self.scope)


def pose(
    request: RouteRequest,
    resolved: ResolvedInput,
    policy: ResolvedPolicy,
    now_ns: int,
    trace: RouteTrace | None,
) -> Question:
    """Return the question that *request* comes down to; see :class:`Question`."""
    tenant_id, model_id, hash_scheme = request.tenant_id, request.model_id, request.hash_scheme
    return Question(
        request,
        resolved,
        policy,
        Scope(tenant_id, model_id, hash_scheme),
        PartitionKey(tenant_id, model_id, hash_scheme, request.adapter_id),
        now_ns,
        trace,
    )


class Matcher:
    """Asks the index and ranks what it says; changes nothing but LFU credits.

    Args:
        index: The prefix index.
        settings: The ranker's knobs.
    """

    __slots__ = ("_index", "_settings")

    def __init__(self, index: PrefixIndex, settings: RankingSettings) -> None:
        self._index = index
        self._settings = settings

    def find(self, question: Question) -> Found:
        """Return the match, else warm replicas where they may answer, else why not."""
        if not question.has_contract_keys():
            return NOTHING
        ranked = self._match(question)
        if ranked:
            return Found(ReasonCode.PREFIX_MATCH, ranked)
        if not question.resolved.block_hashes:
            warm = self._warm(question)
            if warm:
                return Found(ReasonCode.TENANT_HOT, warm)
        return self._classify(question)

    def pick_affinity(self, question: Question) -> Found:
        """Return the one replica this prompt is pinned to, or nothing."""
        resolved = question.resolved
        request = question.request
        if not question.has_contract_keys():
            return NOTHING
        if chain_fault(request.block_hashes, request.block_token_counts) is not None:
            return NOTHING
        seed = affinity_seed(resolved.block_hashes, resolved.prefix_hash)
        replicas = self._index.serving_replicas(question.scope)
        if not seed or not replicas:
            return NOTHING
        chosen = RankedReplica(pick_affinity(replicas, seed), 0.0, 0, 0.0, 0, 0)
        return Found(ReasonCode.AFFINITY_HINT, [chosen])

    def credit(self, question: Question, delivered: Sequence[RankedReplica]) -> None:
        """Credit the delivered matches of a tenant whose victims are chosen by use."""
        if question.policy.algorithm is not EvictionAlgorithm.LFU:
            return
        depths = {
            replica.replica_id: replica.matched_blocks
            for replica in delivered
            if replica.matched_tokens > 0
        }
        hashes = question.resolved.block_hashes or [question.resolved.prefix_hash]
        self._index.credit(question.partition, hashes, depths)

    def _match(self, question: Question) -> list[RankedReplica]:
        candidates = self._candidates(question)
        if not candidates:
            return []
        inputs = self._inputs(question)
        ranked = rank_matches(candidates, inputs)
        if question.trace is not None:
            question.trace.add_match(candidates, explain_matches(candidates, inputs), ranked)
        return ranked

    def _candidates(self, question: Question) -> list[Candidate]:
        resolved = question.resolved
        if resolved.block_hashes:
            return self._index.match_chain(
                question.partition,
                resolved.block_hashes,
                resolved.block_token_counts,
                question.now_ns,
            )
        if resolved.prefix_hash:
            return self._index.match_exact(
                question.partition, resolved.prefix_hash, question.now_ns
            )
        return []

    def _inputs(self, question: Question) -> RankInputs:
        scope, index = question.scope, self._index
        serving_count = index.serving_count(scope)
        if question.trace is not None:
            question.trace.serving_count = serving_count
        return RankInputs(
            now_ns=question.now_ns,
            ttl_ns=question.policy.ttl_ns,
            serving_count=serving_count,
            stats=index.stats_of(scope.tenant_id, scope.model_id),
            settings=self._settings,
            ttft_ms=question.request.ttft_ms,
        )

    def _warm(self, question: Question) -> list[RankedReplica]:
        serving = self._index.serving_replicas(question.scope)
        if not serving:
            return []
        inputs = self._inputs(question)
        if question.trace is not None:
            question.trace.warm_factors = explain_tenant_hot(serving, inputs)
        return rank_tenant_hot(serving, inputs)

    def _classify(self, question: Question) -> Found:
        """Return which contract key the index has never heard of, outermost first."""
        index, request = self._index, question.request
        if index.is_empty():
            return NOTHING
        if not index.has_tenant(request.tenant_id):
            return Found(ReasonCode.UNKNOWN_TENANT, [])
        if not index.has_model(request.tenant_id, request.model_id):
            return Found(ReasonCode.UNKNOWN_MODEL, [])
        if index.serving_count(question.scope) == 0:
            return Found(ReasonCode.UNKNOWN_HASH_SCHEME, [])
        return NOTHING
