"""The life of a body as a table: which event is possible in which state, and where it leads."""

from enum import StrEnum
from typing import Final


class BodyState(StrEnum):
    """Where a body is in its life."""

    UPLOADING = "uploading"
    """Chunks arrive; it has no id."""
    COMPLETE = "complete"
    """Closed by its sender, named by its stream_id, waiting for a Pick."""
    PICKED = "picked"
    """A Pick has had it; if there was a destination, it waits for its PullBody."""
    PULLED = "pulled"
    """A PullBody is handing it out, at whatever pace; its time is not limited."""
    RELEASED = "released"
    """Its bytes are gone."""


class BodyEvent(StrEnum):
    """What happens to a body."""

    CHUNK = "chunk"
    HALF_CLOSE = "half_close"
    RETRACT = "retract"
    """The upload turns out to have been reset, perhaps after it looked closed."""
    PICK = "pick"
    PULL = "pull"
    EXPIRE = "expire"
    RELEASE = "release"


TRANSITIONS: Final = {
    (BodyState.UPLOADING, BodyEvent.CHUNK): BodyState.UPLOADING,
    (BodyState.UPLOADING, BodyEvent.HALF_CLOSE): BodyState.COMPLETE,
    (BodyState.UPLOADING, BodyEvent.RETRACT): BodyState.RELEASED,
    (BodyState.UPLOADING, BodyEvent.EXPIRE): BodyState.RELEASED,
    (BodyState.COMPLETE, BodyEvent.RETRACT): BodyState.RELEASED,
    (BodyState.COMPLETE, BodyEvent.PICK): BodyState.PICKED,
    (BodyState.COMPLETE, BodyEvent.EXPIRE): BodyState.RELEASED,
    (BodyState.PICKED, BodyEvent.PULL): BodyState.PULLED,
    (BodyState.PICKED, BodyEvent.EXPIRE): BodyState.RELEASED,
    (BodyState.PICKED, BodyEvent.RELEASE): BodyState.RELEASED,
    (BodyState.PULLED, BodyEvent.RELEASE): BodyState.RELEASED,
}
"""Everything that is possible; what is missing does not happen."""


def follow(state: BodyState, event: BodyEvent) -> BodyState | None:
    """Return the state after *event*, or None where it is not possible."""
    return TRANSITIONS.get((state, event))
