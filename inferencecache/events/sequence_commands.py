"""What a sequence tracker tells its driver to do, and what it counts."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class SyncState(StrEnum):
    """How far one source has come."""

    CONNECTING = "connecting"
    SYNCING = "syncing"
    """The past is being replayed; live messages wait."""
    LIVE = "live"
    GAP = "gap"
    """Something in between is missing and is being replayed."""


class ResetReason(StrEnum):
    """Why everything known of a source is void."""

    RESTART = "restart"
    GAP = "gap"


class Apply(NamedTuple):
    """Decode and apply a batch; batches come in order and once each."""

    number: int
    payload: bytes
    is_live: bool


class Reset(NamedTuple):
    """Clear the source's blocks; what follows belongs to a new start."""

    reason: ResetReason


class Doubt(NamedTuple):
    """Some blocks may be gone without our knowing.

    Attributes:
        missed: Messages that are lost for good; 0 if the connection was away and nothing shows
            whether the engine is still the same.
    """

    missed: int


class RequestReplay(NamedTuple):
    """Ask the engine for its buffered messages, on a fresh socket; an earlier request is void.

    Attributes:
        ticket: Hand back with everything that arrives in answer.
        start: First number wanted.
    """

    ticket: int
    start: int


Command = Apply | Reset | Doubt | RequestReplay


@dataclass(slots=True)
class SequenceCounters:
    """Totals since the start.

    Attributes:
        applied: Batches handed on, in all.
        replayed: Of these, from a replay.
        duplicates: Live messages seen before.
        restarts: Restarts of the engine, and jumps too far ahead to be a gap.
        gaps: Times a number was found missing.
        missing_numbers: Numbers found missing, whether or not a replay brought them later.
        lost_numbers: Numbers given up for good.
        final_gaps: Times numbers were given up.
        heads_lost: Times a replay did not reach back to the first message.
        replay_requests: Replays asked for.
        replay_timeouts: Replays without an end marker.
        reorder_refused: Messages that found no room while an earlier one was missing.
        stray_ends: End markers outside a replay.
    """

    applied: int = 0
    replayed: int = 0
    duplicates: int = 0
    restarts: int = 0
    gaps: int = 0
    missing_numbers: int = 0
    lost_numbers: int = 0
    final_gaps: int = 0
    heads_lost: int = 0
    replay_requests: int = 0
    replay_timeouts: int = 0
    reorder_refused: int = 0
    stray_ends: int = 0
