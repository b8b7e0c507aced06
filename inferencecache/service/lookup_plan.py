"""What all lookups of one partition share while the same policies are in force.

A lookup asks the policies, names its partition twice over and finds out which gates can take
anything away. None of that depends on the prompt, so it is done once and kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from inferencecache.clock import NS_PER_MS
from inferencecache.policy import PolicyStore, ResolvedPolicy
from inferencecache.service.gates import PolicyGate, active_gates
from inferencecache.service.route_request import RouteRequest
from inferencecache.types import PROBE_TENANT_ID, EvictionAlgorithm, PartitionKey, ReasonCode, Scope

PLANS_MAX: Final = 1_024
"""Plans kept; one more, and all are made anew as they are asked for."""

PLAN_NAMES_CHARS_MAX: Final = 1_024
"""Longest names, together, of a plan that is kept; clients choose them."""

_KEY_FIELDS: Final = len(PartitionKey._fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupPlan:
    """How lookups of one partition go.

    Attributes:
        partition: The part of the index asked about.
        scope: The engine domain it belongs to.
        policy: The tenant's.
        budget_ns: Time the policy gives a lookup, in nanoseconds, None for no limit.
        gates: The gates that can take anything away, by the reason they meet.
        is_reserved: Whether this is the reserved tenant, which is told nothing.
        can_match: Whether tenant, model and scheme are all set.
        refuses_short: Whether prompts too short for a hint are answered before the index is asked.
        credits_use: Whether delivered matches count as used, for victims to be chosen by it.
    """

    partition: PartitionKey
    scope: Scope
    policy: ResolvedPolicy
    budget_ns: int | None
    gates: Mapping[ReasonCode, tuple[PolicyGate, ...]]
    is_reserved: bool
    can_match: bool
    refuses_short: bool
    credits_use: bool


def make_plan(partition: PartitionKey, policy: ResolvedPolicy) -> LookupPlan:
    """Return the plan for *partition* under *policy*."""
    scope = Scope(*partition[: len(Scope._fields)])
    timeout_ms = policy.lookup_timeout_ms
    return LookupPlan(
        partition=partition,
        scope=scope,
        policy=policy,
        budget_ns=None if timeout_ms is None else timeout_ms * NS_PER_MS,
        gates=active_gates(policy),
        is_reserved=partition.tenant_id == PROBE_TENANT_ID,
        can_match=all(scope),
        refuses_short=not policy.affinity_enabled and policy.minimum_prefix_tokens > 0,
        credits_use=policy.algorithm is EvictionAlgorithm.LFU,
    )


class LookupPlans:
    """The plans in use, made when first asked for, forgotten when the policies are replaced.

    Args:
        policies: Each tenant's policy.
    """

    __slots__ = ("_plans", "_policies", "_revision")

    def __init__(self, policies: PolicyStore) -> None:
        self._policies = policies
        self._revision = policies.revision
        self._plans: dict[tuple[object, ...], LookupPlan] = {}

    def of(self, request: RouteRequest) -> LookupPlan:
        """Return the plan for what *request* asks about.

        Complexity: O(1).
        """
        if self._revision != self._policies.revision:
            self._revision = self._policies.revision
            self._plans.clear()
        plan = self._plans.get(request[:_KEY_FIELDS])
        return self._add(request) if plan is None else plan

    def _add(self, request: RouteRequest) -> LookupPlan:
        partition = PartitionKey(
            request.tenant_id, request.model_id, request.hash_scheme, request.adapter_id
        )
        plan = make_plan(partition, self._policies.resolved(partition.tenant_id))
        if sum(map(len, partition)) <= PLAN_NAMES_CHARS_MAX:
            if len(self._plans) >= PLANS_MAX:
                self._plans.clear()
            self._plans[partition] = plan
        return plan
