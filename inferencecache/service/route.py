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
hashing a huge prompt and waiting for a tokenizer interrupt it, and both come before the index is
asked.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from inferencecache.clock import NS_PER_MS, NS_PER_US, Clock
from inferencecache.policy import PolicyStore, ResolvedPolicy
from inferencecache.ranking import RankedReplica
from inferencecache.service.gates import GATES, Found, Gate, below_minimum_prefix
from inferencecache.service.match import Matcher, Question, pose
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


class Decision(NamedTuple):
    """An answer without its latency.

    Attributes:
        reason_code: Why.
        replicas: Best first.
        adapter_id: Echo; empty where the index was not consulted to the end.
        token_ids: Echo of what the server tokenized.
    """

    reason_code: ReasonCode
    replicas: Sequence[RankedReplica] = ()
    adapter_id: str = ""
    token_ids: Sequence[int] = ()


_TIMEOUT: Final = Decision(ReasonCode.TIMEOUT)
_REQUIRES_CHAIN: Final = Decision(ReasonCode.POLICY_REQUIRES_CHAIN)

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
    """

    matcher: Matcher
    resolver: InputResolver
    policies: PolicyStore
    clock: Clock
    observer: LookupObserver
    tokenize_timeout_ns: int


class LookupRoute:
    """Answers which replicas are warm for a prompt; never raises because of what was asked.

    Args:
        parts: Its collaborators.
    """

    __slots__ = ("_parts", "fail_opens")

    def __init__(self, parts: RouteParts) -> None:
        self._parts = parts
        self.fail_opens: dict[FailOpen, int] = dict.fromkeys(FailOpen, 0)
        """Inputs that could not be used, by reason."""

    def answer_sent(
        self,
        request: RouteRequest,
        deadline_ns: int | None = None,
        trace: RouteTrace | None = None,
    ) -> RouteAnswer | None:
        """Decide at once, or return None where the input has to be derived: see :meth:`steps`.

        Args:
            request: The question.
            deadline_ns: Monotonic time by which the caller wants the answer, or None.
            trace: Filled with the reasons when given.
        """
        started_ns = self._parts.clock.monotonic_ns()
        decision = self._decide_sent(request, started_ns, deadline_ns, trace)
        return None if decision is None else self._finish(request, decision, started_ns)

    def steps(
        self,
        request: RouteRequest,
        deadline_ns: int | None = None,
        trace: RouteTrace | None = None,
    ) -> RouteSteps:
        """Decide in slices; see :data:`RouteSteps`.

        Args:
            request: The question.
            deadline_ns: Monotonic time by which the caller wants the answer, or None.
            trace: Filled with the reasons when given.
        """
        started_ns = self._parts.clock.monotonic_ns()
        decision = self._decide_sent(request, started_ns, deadline_ns, trace)
        if decision is None:
            decision = yield from self._derive(request, started_ns, deadline_ns, trace)
        return self._finish(request, decision, started_ns)

    def _finish(self, request: RouteRequest, decision: Decision, started_ns: int) -> RouteAnswer:
        reason_code, replicas, adapter_id, token_ids = decision
        latency_ns = 0
        if request.tenant_id != PROBE_TENANT_ID:
            latency_ns = self._parts.clock.monotonic_ns() - started_ns
        self._parts.observer.lookup_finished(
            request.model_id, reason_code, latency_ns, hint_used=bool(replicas)
        )
        return RouteAnswer(reason_code, replicas, adapter_id, token_ids, latency_ns // NS_PER_US)

    def _decide_sent(
        self,
        request: RouteRequest,
        started_ns: int,
        caller_deadline_ns: int | None,
        trace: RouteTrace | None,
    ) -> Decision | None:
        """Return the decision on what *request* carries, None where hashes must be derived."""
        if request.tenant_id == PROBE_TENANT_ID:
            return self._reserved(trace)
        policy = self._parts.policies.resolved(request.tenant_id)
        deadline_ns = self._deadline(request, policy, started_ns, caller_deadline_ns)
        if trace is not None:
            trace.policy = policy
        if self._is_late(deadline_ns, trace):
            return _TIMEOUT
        if policy.require_chain and not has_valid_chain(request):
            if trace is not None:
                trace.add_gate(Gate.REQUIRE_CHAIN, ReasonCode.POLICY_REQUIRES_CHAIN)
            return _REQUIRES_CHAIN
        resolved = resolve_sent(request, chain_enabled=policy.chain_enabled)
        if resolved is None:
            return None
        now_ns = self._parts.clock.now_ns()
        return self._answer(pose(request, resolved, policy, now_ns, trace), deadline_ns)

    def _derive(
        self,
        request: RouteRequest,
        started_ns: int,
        caller_deadline_ns: int | None,
        trace: RouteTrace | None,
    ) -> Generator[Wait | None, bool | None, Decision]:
        policy = self._parts.policies.resolved(request.tenant_id)
        deadline_ns = self._deadline(request, policy, started_ns, caller_deadline_ns)
        resolved = yield from self._parts.resolver.derive_steps(
            request, deadline_ns, chain_enabled=policy.chain_enabled
        )
        now_ns = self._parts.clock.now_ns()
        return self._answer(pose(request, resolved, policy, now_ns, trace), deadline_ns)

    def _answer(self, question: Question, deadline_ns: int | None) -> Decision:
        request, resolved, policy, trace = (
            question.request,
            question.resolved,
            question.policy,
            question.trace,
        )
        token_ids = resolved.token_ids
        if trace is not None:
            trace.resolved = resolved
        if resolved.timed_out or self._is_late(deadline_ns, trace):
            return Decision(ReasonCode.TIMEOUT, token_ids=token_ids)
        if self._is_unusable(resolved, policy, trace):
            return Decision(ReasonCode.NO_HINT, token_ids=token_ids)
        found = self._parts.matcher.find(question)
        if self._is_late(deadline_ns, trace):
            return Decision(ReasonCode.TIMEOUT, token_ids=token_ids)
        found = self._pass_gates(found, question)
        if found.reason_code is ReasonCode.PREFIX_MATCH:
            self._parts.matcher.credit(question, found.replicas)
        return Decision(found.reason_code, found.replicas, request.adapter_id, token_ids)

    def _is_unusable(
        self, resolved: ResolvedInput, policy: ResolvedPolicy, trace: RouteTrace | None
    ) -> bool:
        """Return whether there is nothing to ask the index."""
        gate = None
        if resolved.fail_open is not None:
            self.fail_opens[resolved.fail_open] += 1
            gate = Gate.INPUT
        elif not policy.affinity_enabled and below_minimum_prefix(
            policy, effective_tokens(resolved)
        ):
            gate = Gate.MINIMUM_PREFIX_TOKENS
        if gate is not None and trace is not None:
            trace.add_gate(gate, ReasonCode.NO_HINT)
        return gate is not None

    def _pass_gates(self, found: Found, question: Question) -> Found:
        policy, trace = question.policy, question.trace
        tokens = effective_tokens(question.resolved) if policy.minimum_prefix_tokens > 0 else 0
        for name, gate in GATES.get(found.reason_code, ()):
            before = found
            found = gate(found, policy, tokens)
            if trace is not None:
                trace.add_gate(name, found.reason_code, len(before.replicas), len(found.replicas))
            if not found.replicas:
                break
        if found.reason_code is ReasonCode.NO_HINT and policy.affinity_enabled:
            found = self._parts.matcher.pick_affinity(question)
            if trace is not None:
                trace.add_gate(Gate.AFFINITY, found.reason_code, 0, len(found.replicas))
        return found

    def _deadline(
        self,
        request: RouteRequest,
        policy: ResolvedPolicy,
        started_ns: int,
        caller_deadline_ns: int | None,
    ) -> int | None:
        """Return the tighter of the two deadlines, or the safety net of a tokenization."""
        deadline_ns = caller_deadline_ns
        if policy.lookup_timeout_ms is not None:
            budget_end_ns = started_ns + policy.lookup_timeout_ms * NS_PER_MS
            deadline_ns = budget_end_ns if deadline_ns is None else min(deadline_ns, budget_end_ns)
        if deadline_ns is None and will_tokenize(request, chain_enabled=policy.chain_enabled):
            deadline_ns = started_ns + self._parts.tokenize_timeout_ns
        return deadline_ns

    def _is_late(self, deadline_ns: int | None, trace: RouteTrace | None) -> bool:
        if deadline_ns is None or self._parts.clock.monotonic_ns() < deadline_ns:
            return False
        if trace is not None:
            trace.add_gate(Gate.DEADLINE, ReasonCode.TIMEOUT)
        return True

    @staticmethod
    def _reserved(trace: RouteTrace | None) -> Decision:
        if trace is not None:
            trace.add_gate(Gate.RESERVED_TENANT, ReasonCode.NO_HINT)
        return Decision(ReasonCode.NO_HINT)
