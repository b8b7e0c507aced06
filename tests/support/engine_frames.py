"""Numbered messages of an engine, and trackers that have seen some."""

from engine_payloads import T16, batch, map_store

from inferencecache.events import (
    Apply,
    Command,
    Frame,
    RequestReplay,
    SequenceTracker,
    SyncState,
)
from inferencecache.settings.producer import SequenceSettings

IDLE = 10
TOTAL = 1_000


def frame(number: int, life: int = 0) -> Frame:
    """Return a message whose time rises with its number and with the engine's life."""
    return Frame(number, batch(map_store([number], T16), ts=1_000.0 * (life + 1) + number))


def tracker(*, has_replay: bool = True, **settings: object) -> SequenceTracker:
    """Return a tracker with short limits."""
    limits = {"replay_idle_ns": IDLE, "replay_total_ns": TOTAL, **settings}
    return SequenceTracker(SequenceSettings(**limits), has_replay=has_replay)  # type: ignore[arg-type]


def applied(commands: list[Command]) -> list[int]:
    """Return the numbers handed on."""
    return [command.number for command in commands if isinstance(command, Apply)]


def requested(commands: list[Command]) -> RequestReplay:
    """Return the only replay request among *commands*."""
    (found,) = [command for command in commands if isinstance(command, RequestReplay)]
    return found


def synced(*numbers: int, **settings: object) -> SequenceTracker:
    """Return a tracker that has replayed *numbers* and is live."""
    source = tracker(**settings)
    ticket = requested(source.connected(0)).ticket
    for number in numbers:
        source.replayed(ticket, frame(number), 0)
    source.replay_ended(ticket, 0)
    assert source.state == SyncState.LIVE
    return source
