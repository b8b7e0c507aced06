"""The record of one route decision, for whoever asks why."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from inferencecache.policy import ResolvedPolicy
from inferencecache.ranking import Factors, RankedReplica, WarmFactors
from inferencecache.service.gates import Gate
from inferencecache.service.resolve import ResolvedInput
from inferencecache.types import Candidate, ReasonCode


class GateRecord(NamedTuple):
    """What one gate made of the answer.

    Attributes:
        gate: The gate.
        reason_code: The reason after it; NO_HINT stands for nothing found.
        replicas_before: Replicas that reached it.
        replicas_after: Replicas that passed it.
    """

    gate: Gate
    reason_code: ReasonCode
    replicas_before: int
    replicas_after: int


class RouteTrace:
    """Filled by the lookup it is handed to; the answer is built from the very same values.

    Attributes:
        policy: The tenant's policy as it applied.
        resolved: The input that counted.
        serving_count: Replicas serving the scope.
        candidates: Replicas that hold a leading part of the prompt, before scoring.
        factors: The factors of each candidate's score.
        ranked: All candidates, scored, best first.
        warm_factors: The factors of each warm replica's score, where TENANT_HOT was considered.
        gates: The gates in the order they were passed.
    """

    __slots__ = (
        "candidates",
        "factors",
        "gates",
        "policy",
        "ranked",
        "resolved",
        "serving_count",
        "warm_factors",
    )

    def __init__(self) -> None:
        self.policy: ResolvedPolicy | None = None
        self.resolved: ResolvedInput | None = None
        self.serving_count = 0
        self.candidates: Sequence[Candidate] = ()
        self.factors: Mapping[str, Factors] = {}
        self.ranked: Sequence[RankedReplica] = ()
        self.warm_factors: Mapping[str, WarmFactors] = {}
        self.gates: list[GateRecord] = []

    def add_match(
        self,
        candidates: Sequence[Candidate],
        factors: Mapping[str, Factors],
        ranked: Sequence[RankedReplica],
    ) -> None:
        """Record who matched and how each was scored."""
        self.candidates = candidates
        self.factors = factors
        self.ranked = ranked

    def add_gate(
        self, gate: Gate, reason_code: ReasonCode, before: int = 0, after: int = 0
    ) -> None:
        """Record that *gate* let *after* of *before* replicas through."""
        self.gates.append(GateRecord(gate, reason_code, before, after))
