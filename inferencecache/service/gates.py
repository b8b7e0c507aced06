"""The policy gates between what the index found and what is answered, as a table.

Rules of this file: a gate is a pure function that returns what it was given, the same object, or
what is left of it. Gates stand in the order they apply; what one takes away, none brings back.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from inferencecache.policy import ResolvedPolicy
from inferencecache.ranking import RankedReplica, keep_matched, reaches_floor
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


class Found(NamedTuple):
    """What a lookup has found so far.

    Attributes:
        reason_code: NO_HINT stands for nothing found.
        replicas: Best first; empty without a hint.
    """

    reason_code: ReasonCode
    replicas: list[RankedReplica]


NOTHING: Final = Found(ReasonCode.NO_HINT, [])

GateFunction = Callable[[Found, ResolvedPolicy, int], Found]
"""Takes what was found, the tenant's policy and the prompt's claimed tokens."""


def below_minimum_prefix(policy: ResolvedPolicy, effective_tokens: int) -> bool:
    """Return whether a prompt is too short for the tenant's policy to give a positive hint."""
    return 0 < policy.minimum_prefix_tokens > effective_tokens


def _tenant_hot(found: Found, policy: ResolvedPolicy, _tokens: int) -> Found:
    return found if policy.tenant_hot_enabled else NOTHING


def _minimum_prefix(found: Found, policy: ResolvedPolicy, tokens: int) -> Found:
    return NOTHING if below_minimum_prefix(policy, tokens) else found


def _minimum_matched(found: Found, policy: ResolvedPolicy, _tokens: int) -> Found:
    kept = keep_matched(found.replicas, policy.minimum_matched_tokens)
    if len(kept) == len(found.replicas):
        return found
    return Found(found.reason_code, kept) if kept else NOTHING


def _routing_floor(found: Found, policy: ResolvedPolicy, _tokens: int) -> Found:
    return found if reaches_floor(found.replicas, policy.routing_floor_score) else NOTHING


GATES: Final[dict[ReasonCode, tuple[tuple[Gate, GateFunction], ...]]] = {
    ReasonCode.PREFIX_MATCH: (
        (Gate.MINIMUM_PREFIX_TOKENS, _minimum_prefix),
        (Gate.MINIMUM_MATCHED_TOKENS, _minimum_matched),
        (Gate.ROUTING_FLOOR_SCORE, _routing_floor),
    ),
    ReasonCode.TENANT_HOT: (
        (Gate.TENANT_HOT, _tenant_hot),
        (Gate.MINIMUM_PREFIX_TOKENS, _minimum_prefix),
    ),
}
"""What each kind of positive hint has to pass; nothing else meets a gate."""
