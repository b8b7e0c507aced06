"""From a resolved input to scored replicas, or to the reason why there are none."""

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from inferencecache.index import PrefixIndex
from inferencecache.ranking import (
    PromptDraw,
    RankedReplica,
    RankInputs,
    affinity_seed,
    explain_matches,
    explain_tenant_hot,
    rank_matches,
    rank_tenant_hot,
)
from inferencecache.service.gates import NOTHING, Found
from inferencecache.service.lookup_plan import LookupPlan
from inferencecache.service.match_slices import SlicedMatch, piece_of
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


class FoundInSlices(NamedTuple):
    """What was found out about a long chain before it is answered.

    Attributes:
        candidates: Who holds how much of it.
        draw: The prompt hashed for the affinity pick, None where none is likely.
    """

    candidates: list[Candidate]
    draw: PromptDraw | None


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

    def find_slices(
        self, question: Question, slice_blocks: int, is_late: Callable[[], bool]
    ) -> Generator[None, bool | None, FoundInSlices | None]:
        """Match a chain piece by piece, and hash it for the affinity pick if nobody holds it.

        Yields between pieces, and is sent True if the caller has gone.

        Args:
            question: What is asked; its chain has a block at least.
            slice_blocks: Blocks of a piece.
            is_late: Tells whether time has run out.

        Returns:
            What was found, None if there was no time for it.
        """
        plan, resolved = question.plan, question.resolved
        chain = resolved.block_hashes, resolved.block_token_counts
        match = SlicedMatch(self._index, plan.partition, chain, question.now_ns, slice_blocks)
        while match.step():
            if (yield None) or is_late():
                return None
        candidates = match.candidates()
        if candidates or not plan.policy.affinity_enabled:
            return FoundInSlices(candidates, None)
        draw = PromptDraw()
        for start in range(0, len(chain[0]), slice_blocks):
            if (yield None) or is_late():
                return None
            draw.add(affinity_seed(piece_of(chain[0], start, start + slice_blocks), b""))
        return FoundInSlices(candidates, draw)

    def find(self, question: Question, sliced: FoundInSlices | None = None) -> Found:
        """Return the match, else warm replicas where they may answer, else why not.

        Args:
            question: What is asked.
            sliced: What was found in slices, None to match here.
        """
        plan, _, resolved, now_ns, _ = question
        if not plan.can_match:
            return NOTHING
        hashes, counts = resolved.block_hashes, resolved.block_token_counts
        candidates: list[Candidate] = []
        # A resolved chain has a count per hash, and counts may be bytes, which are cheap to ask.
        if sliced is not None:
            candidates = sliced.candidates
        elif counts:
            candidates = self._index.match_chain(plan.partition, hashes, counts, now_ns)
        elif resolved.prefix_hash:
            candidates = self._index.match_exact(plan.partition, resolved.prefix_hash, now_ns)
        if candidates:
            return ReasonCode.PREFIX_MATCH, self._rank(question, candidates)
        if not counts and (warm := self._warm(question)):
            return ReasonCode.TENANT_HOT, warm
        return self._classify(question)

    def pick_affinity(self, question: Question, sliced: FoundInSlices | None = None) -> Found:
        """Return the one replica this prompt is pinned to, or nothing.

        Args:
            question: What is asked.
            sliced: What was found in slices; without a draw in it the whole chain is hashed here.
        """
        resolved = question.resolved
        request = question.request
        if not question.plan.can_match:
            return NOTHING
        if chain_fault(request.block_hashes, request.block_token_counts) is not None:
            return NOTHING
        replicas = self._index.serving_replicas(question.plan.scope)
        if not replicas:
            return NOTHING
        draw = sliced.draw if sliced is not None else None
        if draw is None:
            seed = affinity_seed(resolved.block_hashes, resolved.prefix_hash)
            if not seed:
                return NOTHING
            draw = PromptDraw()
            draw.add(seed)
        chosen = RankedReplica(draw.pick(replicas), 0.0, 0, 0.0, 0, 0)
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
