"""What is remembered of the replay that an engine was asked for."""

from dataclasses import dataclass


@dataclass(slots=True)
class Replay:
    """The replay in flight.

    Attributes:
        ticket: Its name.
        expected: Number expected when it was asked for; None at the start of a life.
        active_ns: When it was asked for or last brought something.
        brought: Messages it brought.
    """

    ticket: int
    expected: int | None
    active_ns: int
    brought: int = 0
