"""Put one publisher's numbered messages in order, once each, and find out what is missing.

Theory of operation
-------------------
A publisher numbers its messages from 0 and keeps a ring of past ones that can be replayed. Messages
get lost on the way, numbers burn when a message could not be encoded, replays have holes or no end,
and a restarted engine starts at 0 again. The tracker holds one number, *expected*, and a buffer of
later messages::

    CONNECTING --connected--> SYNCING --replay over--> LIVE --a later number comes--> GAP
                              SYNCING <----restart---- LIVE <--filled or given up---- GAP

* Live messages that come while a replay runs wait in the buffer and are merged by number.
* A replay that leaves the expected number out is asked for again from there. After several
  requests without progress the number is gone for good: the stream goes on, in doubt.
* After a reconnect the last message is asked for once more: if the engine shows another one or
  none at all, it has restarted. Without an answer what it held before is in doubt.

Rules of this file
------------------
* No I/O, no clock: the driver hands in messages and the time and carries out the commands, in
  order. Between two calls it wakes the tracker at ``deadline_ns``.
* Batches are handed on in rising order within one life, never twice, unless all of them are asked
  for again.
* The number of an end marker is never taken for a batch's.
"""

from inferencecache.events.engine_life import EngineLife, Verdict
from inferencecache.events.frames import END_OF_REPLAY, Frame
from inferencecache.events.reorder import ReorderBuffer
from inferencecache.events.replay import Replay
from inferencecache.events.sequence_commands import (
    Apply,
    Command,
    Doubt,
    RequestReplay,
    Reset,
    ResetReason,
    SequenceCounters,
    SyncState,
)
from inferencecache.settings.producer import SequenceSettings


class SequenceTracker:
    """Order and completeness of one publisher (one rank).

    Args:
        settings: Bounds and time limits.
        has_replay: Whether the engine's replay socket is known.

    Attributes:
        expected: Number of the next batch, None until the first is known.
        is_incomplete: Batches before *expected* were never seen.
        counters: What happened so far.
    """

    def __init__(self, settings: SequenceSettings, *, has_replay: bool) -> None:
        self.expected: int | None = None
        self.is_incomplete = False
        self.counters = SequenceCounters()
        self._settings = settings
        self._has_replay = has_replay
        self._is_connected = False
        self._life = EngineLife(self._settings.remembered_batches_max)
        self._buffer = ReorderBuffer(
            batches_max=settings.reorder_batches_max, bytes_max=settings.reorder_bytes_max
        )
        self._replay: Replay | None = None
        self._tickets = 0
        self._attempts = 0
        self._filling_since_ns: int | None = None
        self._highest_live: int | None = None
        self._is_unproven = False

    # ------------------------------------------------------------------ reads

    @property
    def state(self) -> SyncState:
        """Where the source stands."""
        if not self._is_connected:
            return SyncState.CONNECTING
        if self._replay is None:
            return SyncState.LIVE
        return SyncState.SYNCING if self._replay.expected is None else SyncState.GAP

    @property
    def is_synced(self) -> bool:
        """Whether everything published so far, as far as it can be known, has been handed on."""
        return self.state == SyncState.LIVE

    @property
    def is_vouched_for(self) -> bool:
        """Whether the engine is there, and known to be the one whose batches were handed on."""
        return self._is_connected and not self._is_unproven

    @property
    def replay_ticket(self) -> int | None:
        """Ticket of the replay in flight; answers to any other are void."""
        return None if self._replay is None else self._replay.ticket

    @property
    def deadline_ns(self) -> int | None:
        """When to call :meth:`tick`; None if nothing is waited for."""
        if self._replay is None or self._filling_since_ns is None:
            return None
        return min(
            self._replay.active_ns + self._settings.replay_idle_ns,
            self._filling_since_ns + self._settings.replay_total_ns,
        )

    @property
    def waiting_batches(self) -> int:
        """Batches that wait for an earlier one."""
        return len(self._buffer)

    # ------------------------------------------------------------------ inputs

    def connected(self, now_ns: int) -> list[Command]:
        """Note that the live socket is (again) connected; an idle engine sends nothing by itself.

        Args:
            now_ns: Monotonic time.
        """
        self._is_connected = True
        if not self._has_replay:
            return [Doubt(0)] if self.expected else []
        # What waits may belong to an earlier life; the replay brings it again if it does not.
        self._buffer.clear()
        self._highest_live = None
        self._is_unproven = bool(self.expected)
        self._attempts = 0
        self._filling_since_ns = None
        return [self._request(now_ns)]

    def disconnected(self) -> None:
        """Note that the live socket lost its connection."""
        self._is_connected = False

    def live(self, frame: Frame, now_ns: int) -> list[Command]:
        """Take in a message from the live socket, which may be lost by then."""
        if frame.number == END_OF_REPLAY:
            self.counters.stray_ends += 1
            return []
        if self._has_passed(frame):
            if self._verdict(frame) is Verdict.RESTART:
                return self._restart(frame, now_ns)
            self.counters.duplicates += 1
            return []
        self._highest_live = max(frame.number, self._highest_live or 0)
        return self._accept(frame, now_ns)

    def replayed(self, ticket: int, frame: Frame, now_ns: int) -> list[Command]:
        """Take in a message of a replay."""
        replay = self._replay
        if replay is None or replay.ticket != ticket:
            return []
        replay.active_ns = now_ns
        replay.brought += 1
        expected = self.expected
        if expected is None:
            lowest = self._buffer.lowest()
            # The ring may have turned over since; what waits must not come after what is later.
            self._start_at(frame.number if lowest is None else min(frame.number, lowest))
        elif frame.number < expected:
            return self._compare(frame, now_ns)
        return [*self._doubt_unproven(), *self._offer(frame, is_live=False)]

    def replay_ended(self, ticket: int, now_ns: int) -> list[Command]:
        """Take in the end marker of a replay."""
        if self._replay is None or self._replay.ticket != ticket:
            return []
        return self._conclude(now_ns, is_complete=True)

    def tick(self, now_ns: int) -> list[Command]:
        """Act on time: a replay that fell silent counts as ended."""
        deadline_ns = self.deadline_ns
        if deadline_ns is None or now_ns < deadline_ns:
            return []
        self.counters.replay_timeouts += 1
        return self._conclude(now_ns, is_complete=False)

    def start_over(self, now_ns: int, *, may_ask: bool) -> list[Command]:
        """Ask for everything again, since what was handed on has been forgotten.

        Commands of earlier calls are void, unless none comes back: without a replay, or unless it
        *may_ask* for one, the stream goes on where it is.
        """
        if not self._has_replay or not may_ask:
            self.is_incomplete = True
            return []
        self._begin()
        return [self._request(now_ns)]

    # ------------------------------------------------------------------ live messages

    def _has_passed(self, frame: Frame) -> bool:
        """Tell whether a live message does not move forward."""
        if self._highest_live is not None and frame.number <= self._highest_live:
            return True
        return self.expected is not None and frame.number < self.expected

    def _verdict(self, frame: Frame) -> Verdict:
        waiting = self._buffer.get(frame.number)
        if waiting is not None:
            return Verdict.DUPLICATE if waiting == frame else Verdict.RESTART
        return self._life.judge(frame)

    def _accept(self, frame: Frame, now_ns: int) -> list[Command]:
        if self.expected is None:
            if self._has_replay and self._replay is None and self._attempts == 0:
                return [*self._offer(frame, is_live=True), self._request(now_ns)]
            if self._replay is None:
                self._start_at(frame.number)
        if self._is_unproven and self._replay is not None:
            self._keep(frame, is_live=True)
            return []
        commands = self._offer(frame, is_live=True)
        if self._is_behind() and self._replay is None:
            self.counters.gaps += 1
            missing = self._next_known() - (self.expected or 0)
            if missing <= self._settings.gap_batches_max:
                self.counters.missing_numbers += missing
            commands.extend(self._fill(now_ns))
        return commands

    def _restart(self, frame: Frame | None, now_ns: int) -> list[Command]:
        """Begin a new life of the engine, with *frame* as its first known message."""
        self.counters.restarts += 1
        self._begin()
        commands: list[Command] = [Reset(ResetReason.RESTART)]
        if frame is not None:
            self._highest_live = frame.number
            commands.extend(self._accept(frame, now_ns))
        elif self._has_replay:
            commands.append(self._request(now_ns))
        return commands

    def _begin(self) -> None:
        """Know nothing of the engine's numbers."""
        self._life = EngineLife(self._settings.remembered_batches_max)
        self._buffer.clear()
        self._replay = None
        self._filling_since_ns = None
        self._attempts = 0
        self._highest_live = None
        self.expected = None
        self.is_incomplete = False
        self._is_unproven = False

    def _compare(self, frame: Frame, now_ns: int) -> list[Command]:
        """Look at a replayed message that was applied before: does the engine still show it?"""
        is_same = self._life.recalls(frame)
        if is_same is None:
            return []
        if not is_same:
            return self._restart(None, now_ns)
        self._is_unproven = False
        return self._drain()

    # ------------------------------------------------------------------ order

    def _start_at(self, number: int) -> None:
        self.expected = number
        if number > 0:
            self.is_incomplete = True
            self.counters.heads_lost += 1

    def _doubt_unproven(self) -> list[Command]:
        """Give up the proof that the engine is still the same, if one is waited for."""
        was_unproven, self._is_unproven = self._is_unproven, False
        return [Doubt(0)] if was_unproven else []

    def _offer(self, frame: Frame, *, is_live: bool) -> list[Command]:
        """Hand on *frame* and what follows it if it is next, keep it if not."""
        if frame.number == self.expected:
            self._buffer.take(frame.number)
            return [self._apply(frame, is_live=is_live), *self._drain()]
        self._keep(frame, is_live=is_live)
        return self._drain()

    def _keep(self, frame: Frame, *, is_live: bool) -> None:
        if not self._buffer.add(frame, is_live=is_live):
            self.counters.reorder_refused += 1

    def _drain(self) -> list[Command]:
        """Hand on every message in the buffer that is next."""
        commands: list[Command] = []
        while len(self._buffer) and self.expected is not None:
            found = self._buffer.take(self.expected)
            if found is None:
                break
            commands.append(self._apply(found[0], is_live=found[1]))
        return commands

    def _apply(self, frame: Frame, *, is_live: bool) -> Apply:
        self._life.note(frame)
        self.expected = frame.number + 1
        self.counters.applied += 1
        self.counters.replayed += not is_live
        return Apply(frame.number, frame.payload, is_live)

    def _next_known(self) -> int:
        """Return the number after a gap, where the stream can go on."""
        lowest = self._buffer.lowest()
        return (self._highest_live or 0) + 1 if lowest is None else lowest

    def _is_behind(self) -> bool:
        """Tell whether a later message is known than the last one handed on."""
        if self.expected is None:
            return False
        return len(self._buffer) > 0 or (self._highest_live or -1) >= self.expected

    # ------------------------------------------------------------------ replays

    def _request(self, now_ns: int) -> Command:
        self._tickets += 1
        self.counters.replay_requests += 1
        if self._filling_since_ns is None:
            self._filling_since_ns = now_ns
        self._replay = Replay(self._tickets, self.expected, now_ns)
        return RequestReplay(self._tickets, (self.expected or 0) - self._is_unproven)

    def _fill(self, now_ns: int) -> list[Command]:
        """Ask for what is missing, or give it up if that has been tried enough."""
        is_late = self._is_late(now_ns)
        is_hopeless = self._attempts >= self._settings.replay_attempts_max
        if self._has_replay and not is_late and not is_hopeless:
            return [self._request(now_ns)]
        commands: list[Command] = []
        while self._is_behind():
            commands.extend(self._give_up())
            self._attempts = 0
            if self._has_replay and not is_late:
                break
        self._filling_since_ns = None
        if self._is_behind():
            commands.append(self._request(now_ns))
        return commands

    def _conclude(self, now_ns: int, *, is_complete: bool) -> list[Command]:
        """End the replay in flight and decide whether to ask again."""
        replay = self._replay
        assert replay is not None, "only a running replay ends"  # noqa: S101 - our own invariant
        self._replay = None
        if self._is_unproven and is_complete and not replay.brought:
            # A ring holds at least the last message of its own life.
            return self._restart(None, now_ns)
        has_moved = self.expected is not None and self.expected > (replay.expected or 0)
        self._attempts = 0 if has_moved else self._attempts + 1
        if self.expected is None:
            return self._conclude_start(now_ns, is_complete=is_complete)
        if not is_complete and self._may_ask_again(now_ns):
            return [self._request(now_ns)]
        commands = [*self._doubt_unproven(), *self._drain()]
        return [*commands, *(self._fill(now_ns) if self._is_behind() else self._settle())]

    def _conclude_start(self, now_ns: int, *, is_complete: bool) -> list[Command]:
        """End the first replay of a life that brought nothing."""
        if not is_complete and self._may_ask_again(now_ns):
            return [self._request(now_ns)]
        lowest = self._buffer.lowest()
        if lowest is None:
            # An end marker without messages: nothing has been published yet.
            self.expected = 0 if is_complete else None
            return self._settle()
        self._start_at(lowest)
        self._attempts = 0
        commands = self._drain()
        return [*commands, *(self._fill(now_ns) if self._is_behind() else self._settle())]

    def _may_ask_again(self, now_ns: int) -> bool:
        return self._attempts < self._settings.replay_attempts_max and not self._is_late(now_ns)

    def _is_late(self, now_ns: int) -> bool:
        since_ns = now_ns if self._filling_since_ns is None else self._filling_since_ns
        return now_ns - since_ns >= self._settings.replay_total_ns

    def _settle(self) -> list[Command]:
        self._filling_since_ns = None
        if self.expected is not None:
            self._attempts = 0
        return []

    def _give_up(self) -> list[Command]:
        """Skip what is missing before the next message we have."""
        assert self.expected is not None, "a gap has a lower end"  # noqa: S101 - our own invariant
        following = self._next_known()
        missed = following - self.expected
        self.is_incomplete = True
        self.expected = following
        if missed > self._settings.gap_batches_max:
            self.counters.restarts += 1
            self._life = EngineLife(self._settings.remembered_batches_max)
            return [Reset(ResetReason.RESTART), *self._drain()]
        self.counters.lost_numbers += missed
        self.counters.final_gaps += 1
        first: Command = Reset(ResetReason.GAP) if self._settings.clear_on_gap else Doubt(missed)
        return [first, *self._drain()]
