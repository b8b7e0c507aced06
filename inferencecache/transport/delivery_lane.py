"""What one server has to be told about one replica.

A lane has three sources, in this order of weight: changes as they happen; the live set, after the
server or the lane lost track; and the slow repetition that keeps entries from expiring. The second
and third are runs of an iterator that is read piece by piece, so that neither memory nor the event
loop depends on how much is held.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from inferencecache.events import Delivery, Operation, Outbox, StoreRun
from inferencecache.settings.producer import OutboxSettings
from inferencecache.transport.client_values import ReplicaRef
from inferencecache.types import StatsReport


class HeldBlocks(Protocol):
    """Everything a replica holds."""

    def live_set(self, *, include_doubtful: bool) -> Iterator[tuple[StoreRun, ...]]:
        """Yield it as runs, step by step; see ``EventMapper.live_set``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneParts:
    """What a lane is about.

    Attributes:
        replica: The replica.
        hash_scheme: Its engine domain.
        block_tokens: Block size of the index.
        held: What it holds.
    """

    replica: ReplicaRef
    hash_scheme: str
    block_tokens: int
    held: HeldBlocks


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRound:
    """What a lane sends in one go.

    Attributes:
        delivery: Changes, or None.
        stats: The replica's numbers, or None.
    """

    delivery: Delivery | None
    stats: StatsReport | None


class Lane:
    """One replica at one server.

    Args:
        parts: What it is about.
        settings: Bounds of what is pending.
        starts_clear: Whether the server is cleared of the replica first.

    Attributes:
        parts: As given.
        outbox: Changes as they happened.
        first_change_ns: Monotonic time of the oldest pending change; None if there is none.
    """

    def __init__(self, parts: LaneParts, settings: OutboxSettings, *, starts_clear: bool) -> None:
        self.parts = parts
        self.outbox = Outbox(settings, parts.block_tokens)
        self.outbox.needs_live_set = starts_clear
        self.first_change_ns: int | None = None
        # Half, because changes gather beside the live set, which must not drive them out.
        self._resync_keys_max = settings.pending_keys_max // 2
        self._resync: Iterator[tuple[StoreRun, ...]] | None = None
        self._renewal: Iterator[tuple[StoreRun, ...]] | None = None
        self._stats: StatsReport | None = None
        self._has_new_stats = False

    @property
    def has_work(self) -> bool:
        """Whether there is something to send or to prepare."""
        return not self.is_told or self._has_new_stats or self._renewal is not None

    @property
    def is_told(self) -> bool:
        """Whether nothing is pending; what is on its way does not count."""
        box = self.outbox
        return box.is_empty and not box.needs_live_set and self._resync is None

    @property
    def is_renewing(self) -> bool:
        """Whether the slow repetition is under way."""
        return self._renewal is not None

    def wanted_since_ns(self, fed_ns: int) -> int:
        """Return from when on the window counts after which this lane is sent.

        Args:
            fed_ns: When the slow repetition was last fed; alone, it is no reason to hurry.
        """
        if self.first_change_ns is not None:
            return self.first_change_ns
        return fed_ns if self.is_told and not self._has_new_stats else 0

    def add(self, operations: Iterable[Operation], now_ns: int) -> None:
        """Take in changes, in order.

        Args:
            operations: The changes.
            now_ns: Monotonic time.
        """
        self.outbox.add(operations)
        if self.first_change_ns is None and not self.outbox.is_empty:
            self.first_change_ns = now_ns

    def set_stats(self, stats: StatsReport | None) -> None:
        """Send *stats* next, in place of any that are not sent yet; None to send none any more."""
        self._stats = stats
        self._has_new_stats = stats is not None

    def lose(self) -> None:
        """Note that the server may have forgotten everything; nothing gathers until it is back."""
        self._resync = None
        self._renewal = None
        self.outbox.restart()
        self.outbox.needs_live_set = True

    def resume(self) -> bool:
        """Begin with a clear and the live set if that is needed; return whether it was."""
        if not self.outbox.needs_live_set:
            return False
        self.outbox.restart()
        self._resync = self.parts.held.live_set(include_doubtful=True)
        self._renewal = None
        return True

    def renew(self) -> None:
        """Begin the slow repetition of what is certain."""
        if self._resync is None and self._renewal is None:
            self._renewal = self.parts.held.live_set(include_doubtful=False)

    def repeat(self) -> None:
        """Begin the slow repetition anew, whatever is under way may have left something out."""
        if not self.outbox.needs_live_set:
            self._renewal = self.parts.held.live_set(include_doubtful=False)

    def prepare_resync(self, keys_max: int) -> Iterator[None]:
        """Queue more of the live set while fewer than *keys_max* keys are pending, in slices."""
        keys_max = min(keys_max, self._resync_keys_max)
        while self._resync is not None and self.outbox.pending_keys < keys_max:
            runs = next(self._resync, None)
            if runs is None:
                self._resync = None
            else:
                self.outbox.add(runs)
            yield

    def prepare_renewal(self, keys_max: int) -> Iterator[int]:
        """Queue at least *keys_max* keys of the slow repetition; yield how many each slice has."""
        queued = 0
        while self._renewal is not None and queued < keys_max:
            runs = next(self._renewal, None)
            if runs is None:
                self._renewal = None
                return
            self.outbox.add(runs)
            keys = sum(len(run.keys) for run in runs)
            queued += keys
            yield keys

    def take(self, keys_max: int, chains_max: int) -> LaneRound | None:
        """Remove and return what is to be sent now; None if there is nothing.

        A clear wipes the replica's numbers too, so they follow it once more.

        Args:
            keys_max: Most keys taken; what is left keeps its age.
            chains_max: Most chains taken.
        """
        delivery = self.outbox.take(keys_max, chains_max)
        if self.outbox.is_empty:
            self.first_change_ns = None
        stats = None
        if self._has_new_stats or (delivery is not None and delivery.has_clear):
            stats = self._stats
        self._has_new_stats = False
        if delivery is None and stats is None:
            return None
        return LaneRound(delivery=delivery, stats=stats)
