"""One decision: which destination a request was given, and how far it has come."""

from enum import StrEnum

import msgspec

from inferencecache.picker.bodies import Body


class Ending(StrEnum):
    """How a request ended; each has exactly one."""

    FINISHED = "finished"
    """Its final token was reported."""
    ABORTED = "aborted"
    """Its caller said that it will not be dispatched."""
    EXPIRED = "expired"
    """Nobody reported anything for too long."""
    EVICTED = "evicted"
    """There were too many decisions, and it was the oldest."""
    STOPPED = "stopped"
    """The server ended."""
    UNSETTLED = "unsettled"
    """It was chosen and then never became a decision; only followers hear of this one."""


class DecisionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known when a decision is made, and does not change.

    Attributes:
        destination: Name under which requests in flight are counted.
        requested_model: The model as the body named it.
        target_model: The model that the body names now.
        tenant: Whose request it is; empty is a tenant, too.
        client_request_id: For logs, shortened.
        total_bytes: Length of the body as it is handed out.
        picked_ns: Monotonic time of the decision.
    """

    destination: str
    requested_model: str
    target_model: str
    tenant: str
    client_request_id: str
    total_bytes: int
    picked_ns: int


class Decision(msgspec.Struct, eq=False):
    """A decision and what has become of it; only its table changes it.

    Attributes:
        response_id: Its name for callers.
        facts: What it is about.
        body: What PullBody will hand out.
        has_first_token: Whether the first token was reported.
        ending: How it ended, None while it has not.
    """

    response_id: int
    facts: DecisionFacts
    body: Body
    has_first_token: bool = False
    ending: Ending | None = None
