"""The seam between a Pick and whoever chooses: what is asked, and what may be answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Protocol

import msgspec

from inferencecache.picker.bodies import Rope
from inferencecache.picker.decisions.following import DecisionFollower
from inferencecache.picker.destination import Destination, LocalDestination, ProviderDestination
from inferencecache.picker.explanation import Explanation
from inferencecache.picker.fleet.candidate import Candidate
from inferencecache.picker.qos import QosClass
from inferencecache.picker.request import InferenceRequest, TopLevel

__all__ = [
    "Choice",
    "Chooser",
    "Destination",
    "LocalDestination",
    "Outcome",
    "PoolName",
    "ProviderDestination",
    "QosClass",
    "Question",
    "Refusal",
]

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
"""Of a caller that passes none on."""


class Outcome(StrEnum):
    """What a Pick found out; the names are the wire's."""

    OK = "OK"
    NO_WORKERS = "NO_WORKERS"
    DEGRADED = "DEGRADED"
    BAD_REQUEST = "BAD_REQUEST"
    POLICY_REJECTED = "POLICY_REJECTED"


class PoolName(msgspec.Struct, frozen=True, kw_only=True):
    """The pool that a caller names.

    Attributes:
        namespace: Empty for the default one.
        name: Its name.
        resource_version: What the caller has seen of it.
    """

    namespace: str
    name: str
    resource_version: str


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be chosen for.

    Attributes:
        request: The parsed body.
        content: The body itself, for whoever hashes its prompt.
        top_level: Its values as they are written; None where they were read elsewhere, and of what
            may wait, since they keep a copy of the body.
        tenant: Whose request it is; the empty text is a tenant like any other.
        qos: How long it can wait.
        pool: Where to look; None for everything that is served.
        client_request_id: The caller's name for the request, the same for all its attempts.
        headers: What the caller passed on with its Pick, names in lower case.
        deadline_ns: Monotonic time at which the caller gives up; None if it does not say.
    """

    request: InferenceRequest
    content: Rope
    top_level: TopLevel | None = None
    tenant: str = ""
    qos: QosClass = QosClass.INTERACTIVE
    pool: PoolName | None = None
    client_request_id: str = ""
    headers: Mapping[str, str] = NO_HEADERS
    deadline_ns: int | None = None


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A destination.

    Attributes:
        destination: Where to send the request.
        target_model: What the body shall name.
        reason: ``key=value`` pairs separated by semicolons.
        is_degraded: Whether something was missing that should have led the choice.
        tier: Name of the tier it was found in; empty where there are none.
        candidate: What was chosen; None where a chooser knows destinations only.
        follower: Told how the decision goes on; None if nobody wants to know.
        explanation: How it came about; None where nobody keeps that.
    """

    destination: Destination
    target_model: str
    reason: str = ""
    is_degraded: bool = False
    tier: str = ""
    candidate: Candidate | None = None
    follower: DecisionFollower | None = None
    explanation: Explanation | None = None

    @property
    def name(self) -> str:
        """Under which its requests in flight are counted."""
        return self.destination.name if self.candidate is None else self.candidate.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """No destination.

    Attributes:
        outcome: NO_WORKERS, POLICY_REJECTED or BAD_REQUEST.
        reason: ``key=value`` pairs separated by semicolons.
        explanation: How it came about; None where nobody keeps that.
    """

    outcome: Outcome
    reason: str
    explanation: Explanation | None = None


class Chooser(Protocol):
    """Chooses destinations."""

    async def choose(self, question: Question) -> Choice | Refusal:
        """Answer *question*; may wait for what it needs to know."""
        ...
