"""From a resolved input to scored replicas, or to the reason why there are none."""

from collections.abc import Sequence
from typing import NamedTuple

from inferencecache.index import PrefixIndex
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
from inferencecache.service.lookup_plan import LookupPlan
from inferencecache.service.resolve import ResolvedInput, chain_fault
from inferencecache.service.route_request import RouteRequest
from inferencecache.service.route_trace import RouteTrace
from inferencecache.settings.ranking import RankingSettings
from inferencecache.types import Candidate, ReasonCode


class Question(NamedTuple):
    """A lookup whose input is known.

    Attributes:
        plan: How lookups of its partition go.
        request: As asked.
        resolved: The input that counts.
        now_ns: Unix time, nanoseconds.
        trace: Filled when given.
    """

    plan: LookupPlan
    request: RouteRequest
    resolved: ResolvedInput
    now_ns: int
    trace: RouteTrace | None


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
        plan, resolved = question.plan, question.resolved
        if not plan.can_match:
            return NOTHING
        candidates: list[Candidate] = []
        hashes, counts = resolved.block_hashes, resolved.block_token_counts
        # A resolved chain has a count per hash, and counts may be bytes, which are cheap to ask.
        if counts:
            candidates = self._index.match_chain(plan.partition, hashes, counts, question.now_ns)
        elif resolved.prefix_hash:
            candidates = self._index.match_exact(
                plan.partition, resolved.prefix_hash, question.now_ns
            )
        if candidates:
            return ReasonCode.PREFIX_MATCH, self._rank(question, candidates)
        if not counts and (warm := self._warm(question)):
            return ReasonCode.TENANT_HOT, warm
        return self._classify(question)

    def pick_affinity(self, question: Question) -> Found:
        """Return the one replica this prompt is pinned to, or nothing."""
        resolved = question.resolved
        request = question.request
        if not question.plan.can_match:
            return NOTHING
        if chain_fault(request.block_hashes, request.block_token_counts) is not None:
            return NOTHING
        seed = affinity_seed(resolved.block_hashes, resolved.prefix_hash)
        replicas = self._index.serving_replicas(question.plan.scope)
        if not seed or not replicas:
            return NOTHING
        chosen = RankedReplica(pick_affinity(replicas, seed), 0.0, 0, 0.0, 0, 0)
        return ReasonCode.AFFINITY_HINT, [chosen]

    def credit(self, question: Question, delivered: Sequence[RankedReplica]) -> None:
        """Credit the delivered matches, for a plan that wants it."""
        depths = {
            replica.replica_id: replica.matched_blocks
            for replica in delivered
            if replica.matched_tokens > 0
        }
        hashes = question.resolved.block_hashes or [question.resolved.prefix_hash]
        self._index.credit(question.plan.partition, hashes, depths)

    def _rank(self, question: Question, candidates: list[Candidate]) -> list[RankedReplica]:
        inputs = self._inputs(question)
        ranked = rank_matches(candidates, inputs)
        if question.trace is not None:
            question.trace.add_match(candidates, explain_matches(candidates, inputs), ranked)
        return ranked

    def _inputs(self, question: Question) -> RankInputs:
        plan, request, _, now_ns, trace = question
        index = self._index
        serving_count = index.serving_count(plan.scope)
        if trace is not None:
            trace.serving_count = serving_count
        stats = index.stats_of(request.tenant_id, request.model_id)
        ttl_ns, settings, ttft_ms = plan.policy.ttl_ns, self._settings, request.ttft_ms
        return tuple.__new__(RankInputs, (now_ns, ttl_ns, serving_count, stats, settings, ttft_ms))

    def _warm(self, question: Question) -> list[RankedReplica]:
        serving = self._index.serving_replicas(question.plan.scope)
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
            return ReasonCode.UNKNOWN_TENANT, []
        if not index.has_model(request.tenant_id, request.model_id):
            return ReasonCode.UNKNOWN_MODEL, []
        if index.serving_count(question.plan.scope) == 0:
            return ReasonCode.UNKNOWN_HASH_SCHEME, []
        return NOTHING
