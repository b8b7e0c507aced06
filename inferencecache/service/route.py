"""The LookupRoute decision.

Theory of operation
-------------------
A lookup passes these points in order; the first that has something to say answers.

1. The reserved tenant is told NO_HINT and nothing else.
2. Time that ran out before, while or after the input was resolved, or by the time the index has
   answered, is a TIMEOUT. The tighter of the caller's and the policy's deadline holds.
3. A policy may insist on a chain: POLICY_REQUIRES_CHAIN.
4. The input is resolved; what cannot be used is NO_HINT.
5. A prompt too short for the policy is NO_HINT here if affinity is off; else the gates see to it.
6. The index answers: PREFIX_MATCH, TENANT_HOT, UNKNOWN_* or nothing.
7. The gates take away what the policy does not want; a match they take comes back as nothing.
8. Nothing becomes AFFINITY_HINT where a replica serves the scope, else NO_HINT.

Everything is one synchronous pass, so on an event loop the index cannot change underneath it. Only
hashing a huge prompt and waiting for a tokenizer interrupt it, which both come before the index is
asked, and matching a chain of thousands of blocks; what changes meanwhile counts for the blocks to
come.

Every lookup passes here, mostly with cold caches, where each further function costs about a
microsecond. So what depends on no prompt is in a :class:`LookupPlan`, and named tuples are made by
``tuple.__new__``, which is what their constructors do without a Python call.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from inferencecache.clock import NS_PER_US, Clock
from inferencecache.policy import PolicyStore
from inferencecache.ranking import RankedReplica
from inferencecache.service.gates import GATES, Found, Gate, below_minimum_prefix
from inferencecache.service.lookup_plan import LookupPlan, LookupPlans
from inferencecache.service.match import FoundInSlices, Matcher, Question
from inferencecache.service.resolve import (
    FailOpen,
    InputResolver,
    ResolvedInput,
    effective_tokens,
    has_valid_chain,
    resolve_sent,
    will_tokenize,
)
from inferencecache.service.route_answer import RouteAnswer
from inferencecache.service.route_request import RouteRequest
from inferencecache.service.route_trace import RouteTrace
from inferencecache.service.tokenizer import Wait
from inferencecache.types import PROBE_TENANT_ID, ReasonCode


class LookupObserver(Protocol):
    """Told about each lookup exactly once, on every path."""

    def lookup_finished(
        self, model_id: str, reason_code: ReasonCode, duration_ns: int, *, hint_used: bool
    ) -> None:
        """Take note of one answer.

        Args:
            model_id: The model as asked for.
            reason_code: The answer's reason.
            duration_ns: Time it took, in nanoseconds, >= 0; 0 for the reserved tenant.
            hint_used: Whether the answer names a replica.
        """
        ...


Decision = tuple[ReasonCode, Sequence[RankedReplica], str, Sequence[int]]
"""Reason, replicas, adapter and tokens of an answer, see :class:`RouteAnswer`; no latency yet."""

_NOTHING: Final[Decision] = (ReasonCode.NO_HINT, (), "", ())
_TIMEOUT: Final[Decision] = (ReasonCode.TIMEOUT, (), "", ())
_REQUIRES_CHAIN: Final[Decision] = (ReasonCode.POLICY_REQUIRES_CHAIN, (), "", ())

RouteSteps = Generator[Wait | None, bool | None, RouteAnswer]
"""Yields None to give the loop back, or a tokenization to wait for; returns the answer.

Sent True, it is told that the caller has gone, and answers TIMEOUT.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteParts:
    """What the route decision works with.

    Attributes:
        matcher: Asks index and ranking.
        resolver: Turns token ids and prompts into hashes.
        policies: Each tenant's policy.
        clock: Time of day for freshness, monotonic time for deadlines and latency.
        observer: Told about each answer.
        tokenize_timeout_ns: Time for a prompt when nobody else sets any.
        chain_blocks_max: Blocks of a chain that count.
        match_slice_blocks: Longest chain that is matched in one step, in blocks.
    """

    matcher: Matcher
    resolver: InputResolver
    policies: PolicyStore
    clock: Clock
    observer: LookupObserver
    tokenize_timeout_ns: int
    chain_blocks_max: int
    match_slice_blocks: int


class LookupRoute:
    """Answers which replicas are warm for a prompt; never raises because of what was asked.

    Args:
        parts: Its collaborators.
    """

    __slots__ = (
        "_blocks_max",
        "_matcher",
        "_monotonic_ns",
        "_now_ns",
        "_observer",
        "_parts",
        "_plans",
        "_slice_blocks",
        "chains_cut",
        "fail_opens",
    )

    def __init__(self, parts: RouteParts) -> None:
        self._parts = parts
        self._plans = LookupPlans(parts.policies)
        self._matcher = parts.matcher
        self._observer = parts.observer
        self._monotonic_ns = parts.clock.monotonic_ns
        self._now_ns = parts.clock.now_ns
        self._blocks_max = parts.chain_blocks_max
        self._slice_blocks = parts.match_slice_blocks
        self.chains_cut = 0
        """Lookups of chains whose end was ignored."""
        self.fail_opens: dict[FailOpen, int] = dict.fromkeys(FailOpen, 0)
        """Inputs that could not be used, by reason."""

    def answer_sent(
        self,
        request: RouteRequest,
        deadline_ns: int | None = None,
        trace: RouteTrace | None = None,
    ) -> RouteAnswer | None:
        """Decide at once, or return None where it takes more than one step: see :meth:`steps`.

        Args:
            request: The question.
            deadline_ns: Monotonic time by which the caller wants the answer, or None.
            trace: Filled with the reasons when given.
        """
        started_ns = self._monotonic_ns()
        plan = self._plans.of(request)
        if plan.budget_ns is not None:
            deadline_ns = _tighter(deadline_ns, started_ns + plan.budget_ns)
        decision = self._decide_sent(plan, request, deadline_ns, trace)
        return None if decision is None else self._finish(request, decision, started_ns)

    def deadline_of(
        self, request: RouteRequest, deadline_ns: int | None, started_ns: int
    ) -> int | None:
        """Return the tighter of the caller's deadline and the policy's; None without either.

        Args:
            request: The question, of which only the names matter.
            deadline_ns: Monotonic time by which the caller wants the answer, or None.
            started_ns: Monotonic time at which the question came.
        """
        budget_ns = self._plans.of(request).budget_ns
        return deadline_ns if budget_ns is None else _tighter(deadline_ns, started_ns + budget_ns)

    def turn_away(self, request: RouteRequest, started_ns: int, *, is_late: bool) -> RouteAnswer:
        """Answer a lookup that is not looked into because others come first.

        Args:
            request: The question, of which only the names matter.
            started_ns: Monotonic time at which it came.
            is_late: Whether its time ran out while it waited; else too many wait already.
        """
        decision = _TIMEOUT if is_late else _NOTHING
        if self._plans.of(request).is_reserved:
            decision = _NOTHING
        elif not is_late:
            self.fail_opens[FailOpen.TOO_MANY_WAITING] += 1
        return self._finish(request, decision, started_ns)

    def steps(
        self,
        request: RouteRequest,
        deadline_ns: int | None = None,
        trace: RouteTrace | None = None,
        started_ns: int | None = None,
    ) -> RouteSteps:
        """Decide in slices; see :data:`RouteSteps`.

        Args:
            request: The question.
            deadline_ns: Monotonic time by which the caller wants the answer, or None.
            trace: Filled with the reasons when given.
            started_ns: Monotonic time at which the question came, None for now.
        """
        if started_ns is None:
            started_ns = self._monotonic_ns()
        plan = self._plans.of(request)
        if plan.budget_ns is not None:
            deadline_ns = _tighter(deadline_ns, started_ns + plan.budget_ns)
        decision = self._decide_sent(plan, request, deadline_ns, trace)
        if decision is None:
            if deadline_ns is None and will_tokenize(
                request, chain_enabled=plan.policy.chain_enabled
            ):
                deadline_ns = started_ns + self._parts.tokenize_timeout_ns
            resolved = yield from self._resolve(plan, request, deadline_ns)
            question = Question(plan, request, resolved, self._now_ns(), trace)
            decision = yield from self._answer_in_steps(question, deadline_ns)
        return self._finish(request, decision, started_ns)

    def _resolve(
        self, plan: LookupPlan, request: RouteRequest, deadline_ns: int | None
    ) -> Generator[Wait | None, bool | None, ResolvedInput]:
        """Return the input that counts, derived where the request does not carry it."""
        chain_enabled = plan.policy.chain_enabled
        resolved = resolve_sent(request, self._blocks_max, chain_enabled=chain_enabled)
        if resolved is None:
            resolved = yield from self._parts.resolver.derive_steps(
                request, deadline_ns, chain_enabled=chain_enabled
            )
        return resolved

    def _answer_in_steps(
        self, question: Question, deadline_ns: int | None
    ) -> Generator[None, bool | None, Decision]:
        """Answer like :meth:`_answer`, giving the loop back while a long chain is matched."""
        blocks = len(question.resolved.block_token_counts)
        if blocks <= self._slice_blocks or not question.plan.can_match:
            return self._answer(question, deadline_ns)
        sliced = yield from self._matcher.find_slices(
            question, self._slice_blocks, partial(self._is_late, deadline_ns, question.trace)
        )
        if sliced is None:
            return ReasonCode.TIMEOUT, (), "", question.resolved.token_ids
        return self._answer(question, deadline_ns, sliced)

    def _finish(self, request: RouteRequest, decision: Decision, started_ns: int) -> RouteAnswer:
        reason_code, replicas, adapter_id, token_ids = decision
        latency_ns = 0
        if request.tenant_id != PROBE_TENANT_ID:
            latency_ns = self._monotonic_ns() - started_ns
        self._observer.lookup_finished(
            request.model_id, reason_code, latency_ns, hint_used=bool(replicas)
        )
        latency_us = latency_ns // NS_PER_US
        fields = (reason_code, replicas, adapter_id, token_ids, latency_us)
        return tuple.__new__(RouteAnswer, fields)

    def _decide_sent(
        self,
        plan: LookupPlan,
        request: RouteRequest,
        deadline_ns: int | None,
        trace: RouteTrace | None,
    ) -> Decision | None:
        """Return the decision on what *request* carries, None where it takes more than a step."""
        policy = plan.policy
        if trace is not None and not plan.is_reserved:
            trace.policy = policy
        if plan.is_reserved or deadline_ns is not None or policy.require_chain:
            refusal = self._refuse(plan, request, deadline_ns, trace)
            if refusal is not None:
                return refusal
        resolved = resolve_sent(request, self._blocks_max, chain_enabled=policy.chain_enabled)
        if resolved is None or len(resolved.block_token_counts) > self._slice_blocks:
            return None
        question = tuple.__new__(Question, (plan, request, resolved, self._now_ns(), trace))
        return self._answer(question, deadline_ns)

    def _refuse(
        self,
        plan: LookupPlan,
        request: RouteRequest,
        deadline_ns: int | None,
        trace: RouteTrace | None,
    ) -> Decision | None:
        """Return the answer to a lookup that is not looked into, else None."""
        if plan.is_reserved:
            if trace is not None:
                trace.add_gate(Gate.RESERVED_TENANT, ReasonCode.NO_HINT)
            return _NOTHING
        if self._is_late(deadline_ns, trace):
            return _TIMEOUT
        if plan.policy.require_chain and not has_valid_chain(request):
            if trace is not None:
                trace.add_gate(Gate.REQUIRE_CHAIN, ReasonCode.POLICY_REQUIRES_CHAIN)
            return _REQUIRES_CHAIN
        return None

    def _answer(
        self,
        question: Question,
        deadline_ns: int | None,
        sliced: FoundInSlices | None = None,
    ) -> Decision:
        plan, request, resolved, _, trace = question
        token_ids = resolved.token_ids
        if trace is not None:
            trace.resolved = resolved
        if resolved.is_cut:
            self.chains_cut += 1
        has_deadline = deadline_ns is not None
        if resolved.timed_out or (has_deadline and self._is_late(deadline_ns, trace)):
            return ReasonCode.TIMEOUT, (), "", token_ids
        if (resolved.fail_open or plan.refuses_short) and self._is_unusable(question):
            return ReasonCode.NO_HINT, (), "", token_ids
        found = self._matcher.find(question, sliced)
        if has_deadline and self._is_late(deadline_ns, trace):
            return ReasonCode.TIMEOUT, (), "", token_ids
        reason_code, replicas = self._pass_gates(question, found, sliced)
        if plan.credits_use and reason_code is ReasonCode.PREFIX_MATCH:
            self._matcher.credit(question, replicas)
        return reason_code, replicas, request.adapter_id, token_ids

    def _is_unusable(self, question: Question) -> bool:
        """Return whether there is nothing to ask the index."""
        plan, _, resolved, _, trace = question
        gate = None
        if resolved.fail_open is not None:
            self.fail_opens[resolved.fail_open] += 1
            gate = Gate.INPUT
        elif below_minimum_prefix(plan.policy, effective_tokens(resolved)):
            gate = Gate.MINIMUM_PREFIX_TOKENS
        if gate is not None and trace is not None:
            trace.add_gate(gate, ReasonCode.NO_HINT)
        return gate is not None

    def _pass_gates(self, question: Question, found: Found, sliced: FoundInSlices | None) -> Found:
        """Return what the policy leaves of *found*, or the affinity pick where nothing is left."""
        plan, _, resolved, _, trace = question
        policy = plan.policy
        reason_code, replicas = found
        tokens = effective_tokens(resolved) if policy.minimum_prefix_tokens > 0 else 0
        for gate in (plan.gates if trace is None else GATES).get(reason_code, ()):
            before = len(replicas)
            replicas = gate.keep(replicas, policy, tokens)
            if not replicas:
                reason_code = ReasonCode.NO_HINT
            if trace is not None:
                trace.add_gate(gate.name, reason_code, before, len(replicas))
            if not replicas:
                break
        if reason_code is ReasonCode.NO_HINT and policy.affinity_enabled:
            reason_code, replicas = self._matcher.pick_affinity(question, sliced)
            if trace is not None:
                trace.add_gate(Gate.AFFINITY, reason_code, 0, len(replicas))
        return reason_code, replicas

    def _is_late(self, deadline_ns: int | None, trace: RouteTrace | None) -> bool:
        if deadline_ns is None or self._monotonic_ns() < deadline_ns:
            return False
        if trace is not None:
            trace.add_gate(Gate.DEADLINE, ReasonCode.TIMEOUT)
        return True


def _tighter(deadline_ns: int | None, other_ns: int) -> int:
    return other_ns if deadline_ns is None else min(deadline_ns, other_ns)
