"""The seam between a Pick and whoever chooses: what is asked, and what may be answered."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from inferencecache.picker.bodies import Rope
from inferencecache.picker.request import InferenceRequest


class Outcome(StrEnum):
    """What a Pick found out; the names are the wire's."""

    OK = "OK"
    NO_WORKERS = "NO_WORKERS"
    DEGRADED = "DEGRADED"
    BAD_REQUEST = "BAD_REQUEST"
    POLICY_REJECTED = "POLICY_REJECTED"


class QosClass(StrEnum):
    """How long a request can wait; the names are the wire's."""

    INTERACTIVE = "INTERACTIVE"
    BATCH = "BATCH"
    DEFERRABLE = "DEFERRABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolName:
    """The pool that a caller names.

    Attributes:
        namespace: Empty for the default one.
        name: Its name.
        resource_version: What the caller has seen of it.
    """

    namespace: str
    name: str
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What has to be chosen for.

    Attributes:
        request: The parsed body.
        content: The body itself, for whoever hashes its prompt.
        tenant: Whose request it is; the empty text is a tenant like any other.
        qos: How long it can wait.
        pool: Where to look; None for everything that is served.
        client_request_id: For logs.
    """

    request: InferenceRequest
    content: Rope
    tenant: str = ""
    qos: QosClass = QosClass.INTERACTIVE
    pool: PoolName | None = None
    client_request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDestination:
    """An engine that the caller can reach by its address.

    Attributes:
        endpoint: ``host:port``, an IPv6 address in brackets.
    """

    endpoint: str

    @property
    def name(self) -> str:
        """Under which its requests in flight are counted."""
        return self.endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderDestination:
    """A provider that the caller resolves.

    Attributes:
        namespace: Of the backend.
        backend: Its name.
        path: Takes the place of the client's; empty leaves it.
    """

    namespace: str
    backend: str
    path: str = ""

    @property
    def name(self) -> str:
        """Under which its requests in flight are counted."""
        return f"provider:{self.namespace}/{self.backend}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A destination.

    Attributes:
        destination: Where to send the request.
        target_model: What the body shall name.
        reason: ``key=value`` pairs separated by semicolons.
        is_degraded: Whether something was missing that should have led the choice.
    """

    destination: LocalDestination | ProviderDestination
    target_model: str
    reason: str = ""
    is_degraded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """No destination.

    Attributes:
        outcome: NO_WORKERS or POLICY_REJECTED.
        reason: ``key=value`` pairs separated by semicolons.
    """

    outcome: Outcome
    reason: str


class Chooser(Protocol):
    """Chooses destinations."""

    async def choose(self, question: Question) -> Choice | Refusal:
        """Answer *question*; may wait for what it needs to know."""
        ...
