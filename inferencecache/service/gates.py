"""The policy gates between what the index found and what is answered, as a table.

Rules of this file: a gate is a pure function that returns what it was given, or what is left of
it. Gates stand in the order they apply; what one takes away, none brings back. A gate that is open
under a policy may be left out under it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from inferencecache.policy import ResolvedPolicy
from inferencecache.ranking import RankedReplica
from inferencecache.types import ReasonCode


class Gate(StrEnum):
    """The points of a lookup at which its answer can change."""

    RESERVED_TENANT = "reserved_tenant"
    DEADLINE = "deadline"
    REQUIRE_CHAIN = "require_chain"
    INPUT = "input"
    MINIMUM_PREFIX_TOKENS = "minimum_prefix_tokens"
    TENANT_HOT = "tenant_hot"
    MINIMUM_MATCHED_TOKENS = "minimum_matched_tokens"
    ROUTING_FLOOR_SCORE = "routing_floor_score"
    AFFINITY = "affinity"


Found = tuple[ReasonCode, list[RankedReplica]]
"""What a lookup has found so far: why, and replicas, best first, none without a hint."""

NOTHING: Final[Found] = (ReasonCode.NO_HINT, [])

GateFunction = Callable[[list[RankedReplica], ResolvedPolicy, int], list[RankedReplica]]
"""Takes the replicas found, at least one, the tenant's policy and the prompt's claimed tokens."""


@dataclass(frozen=True, slots=True)
class PolicyGate:
    """One gate.

    Attributes:
        name: Which.
        is_open: Whether it lets everything pass under a policy.
        keep: Returns the replicas that pass.
    """

    name: Gate
    is_open: Callable[[ResolvedPolicy], bool]
    keep: GateFunction


def below_minimum_prefix(policy: ResolvedPolicy, effective_tokens: int) -> bool:
    """Return whether a prompt is too short for the tenant's policy to give a positive hint."""
    return 0 < policy.minimum_prefix_tokens > effective_tokens


def active_gates(policy: ResolvedPolicy) -> dict[ReasonCode, tuple[PolicyGate, ...]]:
    """Return what is left of :data:`GATES` without the gates that are open under *policy*."""
    return {
        reason_code: tuple(gate for gate in gates if not gate.is_open(policy))
        for reason_code, gates in GATES.items()
    }


def _tenant_hot(
    replicas: list[RankedReplica], policy: ResolvedPolicy, _tokens: int
) -> list[RankedReplica]:
    return replicas if policy.tenant_hot_enabled else []


def _minimum_prefix(
    replicas: list[RankedReplica], policy: ResolvedPolicy, tokens: int
) -> list[RankedReplica]:
    return [] if below_minimum_prefix(policy, tokens) else replicas


def _minimum_matched(
    replicas: list[RankedReplica], policy: ResolvedPolicy, _tokens: int
) -> list[RankedReplica]:
    minimum_tokens = policy.minimum_matched_tokens
    for replica in replicas:
        if replica.matched_tokens < minimum_tokens:
            return [kept for kept in replicas if kept.matched_tokens >= minimum_tokens]
    return replicas


def _routing_floor(
    replicas: list[RankedReplica], policy: ResolvedPolicy, _tokens: int
) -> list[RankedReplica]:
    return replicas if replicas[0].score >= policy.routing_floor_score else []


_MINIMUM_PREFIX: Final = PolicyGate(
    Gate.MINIMUM_PREFIX_TOKENS, lambda policy: policy.minimum_prefix_tokens <= 0, _minimum_prefix
)

GATES: Final[dict[ReasonCode, tuple[PolicyGate, ...]]] = {
    ReasonCode.PREFIX_MATCH: (
        _MINIMUM_PREFIX,
        PolicyGate(
            Gate.MINIMUM_MATCHED_TOKENS,
            lambda policy: policy.minimum_matched_tokens <= 0,
            _minimum_matched,
        ),
        PolicyGate(
            Gate.ROUTING_FLOOR_SCORE,
            lambda policy: policy.routing_floor_score <= 0,
            _routing_floor,
        ),
    ),
    ReasonCode.TENANT_HOT: (
        PolicyGate(Gate.TENANT_HOT, lambda policy: policy.tenant_hot_enabled, _tenant_hot),
        _MINIMUM_PREFIX,
    ),
}
"""What each kind of positive hint has to pass; nothing else meets a gate."""
