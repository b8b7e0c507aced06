"""Follow one publisher: sockets in, ordered batches out.

Theory of operation
-------------------
A :class:`Subscriber` drives a ``SequenceTracker``. It hands in what comes from the live socket, the
replay socket and the connection's monitor, and carries out the tracker's commands: replays are
asked for on a fresh socket each, batches are decoded and handed to a sink.

Rules of this file
------------------
* News of the connection are looked at before messages, since they decide what a message means.
* Work comes in slices of a few milliseconds, after which others get the loop; a socket is thus
  never left alone for long, however much there is to read. One command may bring thousands of
  batches and one batch tens of thousands of blocks, so both wait in queues, and nothing is read
  while something waits.
* Nothing from outside ends the loop. What cannot be read is counted. An unexpected exception is
  logged, and since it may have left things half done, everything is forgotten and asked for again.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final, Protocol

import zmq

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.errors import MalformedEventError
from inferencecache.events import (
    Apply,
    Command,
    Doubt,
    EventBatch,
    RequestReplay,
    Reset,
    SequenceTracker,
    batch_slices,
    decode_batch,
    live_frame,
    replay_frame,
)
from inferencecache.transport.failure_lines import FailureLines
from inferencecache.transport.subscriber_parts import SubscriberCounters, SubscriberParts
from inferencecache.transport.subscriber_pauses import StartOverPauses
from inferencecache.transport.zmq_socket import LiveSocket, ReadySocket, SocketLimits, open_replay

_SLICE_NS: Final = 5 * NS_PER_MS
_SLICE_BLOCKS: Final = 1_024
_IDLE_WAIT_NS: Final = NS_PER_S
_SIZE_MARGIN: Final = 4


class BatchSink(Protocol):
    """Takes what one publisher says, in order."""

    def apply(self, rank: int, batch: EventBatch, *, is_live: bool) -> Iterator[None]:
        """Take in a batch; yield before each further step, if one took some milliseconds."""
        ...

    def reset(self, rank: int) -> None:
        """Forget everything of a rank; its engine has started anew."""
        ...

    def start_over(self, rank: int) -> None:
        """Forget everything of the replicas a rank has to do with; they may be in any state."""
        ...

    def doubt(self, rank: int) -> None:
        """Note that some of what a rank has announced may be gone."""
        ...

    def vouch(self, rank: int, *, is_there: bool) -> None:
        """Note whether a rank's engine is there, and still the one that announced its blocks."""
        ...


class Subscriber:
    """The loop of one publisher.

    Args:
        parts: What it works with.
        tracker: Puts messages in order.
        sink: Takes batches.
        context: Owner of the sockets.

    Attributes:
        counters: What happened so far.
        last_batch_ns: Monotonic time of the last batch; None before the first.
        unanswered_replays: Replays asked for since the last one that brought anything.
    """

    def __init__(
        self,
        parts: SubscriberParts,
        tracker: SequenceTracker,
        sink: BatchSink,
        context: "zmq.Context[zmq.Socket[bytes]]",
    ) -> None:
        self.counters = SubscriberCounters()
        self.last_batch_ns: int | None = None
        self.unanswered_replays = 0
        self.tracker: Final = tracker
        self.parts: Final = parts
        self._sink = sink
        self._context = context
        self._limits = SocketLimits(
            messages_max=parts.messages_max,
            message_bytes_max=_SIZE_MARGIN * parts.decode.payload_bytes_max,
            vanished_after_ns=parts.vanished_after_ns,
        )
        self._failure_lines: Final = FailureLines(
            "batch_failed", "source", parts.log, parts.clock, parts.failure_log_interval_ns
        )
        self._wake = asyncio.Event()
        self._replay: ReadySocket | None = None
        self._ticket = 0
        self._commands: deque[Command] = deque()
        self._slices: deque[EventBatch] = deque()
        self._under_way: Iterator[None] | None = None
        self._is_live = False
        self._was_synced = False
        self._was_connected = False
        self._was_vouched_for = True
        self._wants_all = False
        self._pauses: Final = StartOverPauses(
            parts.start_over_interval_ns, parts.clock.monotonic_ns()
        )

    @property
    def is_synced(self) -> bool:
        """Whether everything published so far, as far as it can be known, has been taken in."""
        return self.tracker.is_synced and not self._has_queued

    @property
    def _has_queued(self) -> bool:
        return bool(self._under_way is not None or self._slices or self._commands)

    async def run(self) -> None:
        """Follow the publisher for ever; ends by being cancelled."""
        parts = self.parts
        live = LiveSocket(self._context, parts.endpoint, parts.topic, self._limits, self._wake)
        try:
            while True:
                self._wake.clear()
                started_ns, started_cpu_ns = parts.clock.monotonic_ns(), parts.cpu_ns()
                if not self._slice(live, started_ns + _SLICE_NS):
                    await self._wait()
                    continue
                await asyncio.sleep(0)
                self.counters.note_away(
                    parts.clock.monotonic_ns() - started_ns, parts.cpu_ns() - started_cpu_ns
                )
        finally:
            live.close()
            self._drop_replay()

    def ask_again(self) -> None:
        """Ask for everything once more, as soon as that may be: all of it has been forgotten."""
        self._wants_all = True
        self._wake.set()

    # ------------------------------------------------------------------ one slice

    def _slice(self, live: LiveSocket, until_ns: int) -> bool:
        """Work until *until_ns*; return whether there may be more to do."""
        if self._wants_all and self._ask_for_all(for_others=True):
            self._sink.reset(self.parts.rank)  # or what has come meanwhile would count twice
        if self._carry_out(until_ns):
            return True
        self._hear_news(live)
        has_more = self._read_live(live, until_ns)
        # A share of its own, or a busy engine's replay would never end.
        has_more |= self._read_replay(self.parts.clock.monotonic_ns() + _SLICE_NS)
        self._queue(self.tracker.tick(self.parts.clock.monotonic_ns()))
        self._note_presence()
        self._note_sync()
        return has_more or self._has_queued

    def _note_presence(self) -> None:
        """Tell the sink of a change; who is back counts once it has heard what that changes."""
        is_there = self.tracker.is_vouched_for and (self._was_vouched_for or not self._has_queued)
        if is_there != self._was_vouched_for:
            self._was_vouched_for = is_there
            self._sink.vouch(self.parts.rank, is_there=is_there)

    def _note_sync(self) -> None:
        """Log a change; who has every message is not behind because some wait to be taken in."""
        is_synced = self.tracker.is_synced and (self._was_synced or not self._has_queued)
        if is_synced != self._was_synced:
            self._was_synced = is_synced
            event = "engine_synced" if self._was_synced else "engine_behind"
            applied = self.tracker.counters.applied
            self.parts.log.info(event, source=self.parts.name, batches=applied)
            self.parts.changed()

    def _hear_news(self, live: LiveSocket) -> None:
        while (is_connected := live.news()) is not None:
            if is_connected:
                self.counters.connects += 1
                self._queue(self.tracker.connected(self.parts.clock.monotonic_ns()))
            else:
                self.counters.disconnects += 1
                self.tracker.disconnected()
            self._tell(is_connected=is_connected)

    def _tell(self, *, is_connected: bool) -> None:
        """Log a change; a peer that hangs up during every handshake is none."""
        if is_connected == self._was_connected:
            return
        self._was_connected = is_connected
        event = "engine_connected" if is_connected else "engine_disconnected"
        self.parts.log.info(event, source=self.parts.name, endpoint=self.parts.endpoint)
        self.parts.changed()

    def _read_live(self, live: LiveSocket, until_ns: int) -> bool:
        while (message := live.receive()) is not None:
            self.counters.messages += 1
            now_ns = self.parts.clock.monotonic_ns()
            try:
                frame = live_frame(message)
            except MalformedEventError as error:
                self.counters.count_malformed(error.reason)
            else:
                self._queue(self.tracker.live(frame, now_ns))
            if self._carry_out(until_ns):
                return True
        return False

    def _read_replay(self, until_ns: int) -> bool:
        while self._replay is not None:
            message = self._replay.receive()
            if message is None:
                return False
            now_ns = self.parts.clock.monotonic_ns()
            self._take_replayed(message, now_ns)
            if self._carry_out(until_ns):
                return True
        return False

    def _take_replayed(self, message: list[bytes], now_ns: int) -> None:
        ticket = self._ticket
        try:
            frame = replay_frame(message)
        except MalformedEventError as error:
            self.counters.count_malformed(error.reason)
            return
        self.unanswered_replays = 0
        if frame is None:
            self._drop_replay()
            self._queue(self.tracker.replay_ended(ticket, now_ns))
        else:
            self._queue(self.tracker.replayed(ticket, frame, now_ns))
        if self.tracker.replay_ticket != self._ticket:
            self._drop_replay()

    async def _wait(self) -> None:
        """Wait for a socket to stir, the tracker's deadline or a while."""
        now_ns = self.parts.clock.monotonic_ns()
        deadline_ns = self.tracker.deadline_ns
        wait_ns = _IDLE_WAIT_NS if deadline_ns is None else max(deadline_ns - now_ns, 0)
        try:
            async with asyncio.timeout(min(wait_ns, _IDLE_WAIT_NS) / NS_PER_S):
                await self._wake.wait()
        except TimeoutError:
            return

    # ------------------------------------------------------------------ commands

    def _queue(self, commands: list[Command]) -> None:
        self._commands.extend(commands)

    def _carry_out(self, until_ns: int) -> bool:
        """Carry out what is queued; return whether the time was over before or after that."""
        while self._has_queued:
            if self._under_way is not None:
                self._go_on(self._under_way)
            elif self._slices:
                self._hand_on(self._slices.popleft())
            else:
                self._run(self._commands.popleft())
            if self.parts.clock.monotonic_ns() >= until_ns:
                break
        self.parts.changed()
        return self.parts.clock.monotonic_ns() >= until_ns

    def _run(self, command: Command) -> None:
        if isinstance(command, Apply):
            self._apply(command)
        elif isinstance(command, RequestReplay):
            self._request(command)
        elif isinstance(command, Reset):
            reason = command.reason.value
            self.parts.log.warning("engine_reset", source=self.parts.name, reason=reason)
            self._sink.reset(self.parts.rank)
        elif isinstance(command, Doubt):
            self._doubt(command.missed)

    def _doubt(self, missed: int) -> None:
        if missed:
            self.parts.log.warning("events_lost", source=self.parts.name, batches=missed)
        else:
            self.parts.log.warning("engine_unproven", source=self.parts.name)
        self._sink.doubt(self.parts.rank)

    def _apply(self, command: Apply) -> None:
        self.last_batch_ns = self.parts.clock.monotonic_ns()
        self.counters.bytes += len(command.payload)
        try:
            batch = decode_batch(command.payload, self.parts.decode)
        except MalformedEventError as error:
            self.counters.count_malformed(error.reason)
            self._sink.doubt(self.parts.rank)
            return
        self._is_live = command.is_live
        self._slices.extend(batch_slices(batch, _SLICE_BLOCKS))
        self._hand_on(self._slices.popleft())  # so that the usual batch is taken in as it counts

    def _hand_on(self, batch: EventBatch) -> None:
        self._under_way = self._steps(batch)
        self._go_on(self._under_way)

    def _steps(self, batch: EventBatch) -> Iterator[None]:
        yield from self._sink.apply(self.parts.rank, batch, is_live=self._is_live)

    def _go_on(self, steps: Iterator[None]) -> None:
        """Take one of *steps*; keep them for the next time unless it was the last."""
        self._under_way = None
        try:
            for _ in steps:
                self._under_way = steps
                return
        except Exception as error:  # noqa: BLE001 - the subscriber's boundary, never fatal
            self.counters.failures += 1
            self._failure_lines.failed(self.parts.name, error)
            self._start_over()

    def _start_over(self) -> None:
        """Withdraw what a failure may have left half done, and ask for it again, not too often.

        A batch that fails each time thus costs what came before it, and no endless replays.
        """
        try:
            self._sink.start_over(self.parts.rank)
        except Exception as error:  # noqa: BLE001 - as above
            self.counters.failures += 1
            self._failure_lines.failed(self.parts.name, error)
        if not self._ask_for_all(for_others=False):
            self._pauses.failed()

    def _ask_for_all(self, *, for_others: bool) -> bool:
        """Ask for everything in place of what is queued, unless that was a moment ago.

        Args:
            for_others: Whether it is not a failure here that has cost what was known.

        Returns:
            Whether it is asked for.
        """
        now_ns = self.parts.clock.monotonic_ns()
        may_ask = self._pauses.may_ask(now_ns, for_others=for_others)
        if for_others and not may_ask:
            return False
        commands = self.tracker.start_over(now_ns, may_ask=may_ask)
        self._wants_all = self._wants_all and not may_ask
        if commands:
            self._pauses.asked(now_ns)
            self._under_way = None
            self._commands.clear()
            self._slices.clear()
            self._queue(commands)
        return bool(commands)

    def _request(self, command: RequestReplay) -> None:
        self._drop_replay()
        self._ticket = command.ticket
        self.unanswered_replays += 1
        self.parts.log.info("replay_requested", source=self.parts.name, start=command.start)
        self._replay = open_replay(
            self._context, self.parts.replay_endpoint, command.start, self._limits, self._wake
        )

    def _drop_replay(self) -> None:
        if self._replay is not None:
            self._replay.close()
            self._replay = None
