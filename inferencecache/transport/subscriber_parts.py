"""What a subscriber works with, and what it counts."""

from collections.abc import Callable
from dataclasses import dataclass, field

from inferencecache.clock import Clock
from inferencecache.settings.producer import DecodeSettings
from inferencecache.transport.structured_log import EventLog
from inferencecache.transport.system_clock import thread_cpu_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberParts:
    """What a subscriber works with.

    Attributes:
        name: What the source is called in logs and metrics.
        rank: Rank of the publisher.
        endpoint: Where it publishes.
        replay_endpoint: Where it replays; empty for nowhere.
        topic: Prefix of the topics wanted.
        messages_max: Messages queued in the live socket.
        vanished_after_ns: When a connection whose far side is gone counts as lost.
        failure_log_interval_ns: Shortest time between two lines about batches that failed.
        start_over_interval_ns: Shortest time between two requests for everything after failures.
        decode: Caps on payloads.
        clock: Time, for replays and silences.
        log: Where things that matter to an operator are told.
        changed: Called after anything happened.
        cpu_ns: Processor time of the loop's thread.
    """

    name: str
    rank: int
    endpoint: str
    replay_endpoint: str
    topic: str
    messages_max: int
    vanished_after_ns: int
    failure_log_interval_ns: int
    start_over_interval_ns: int
    decode: DecodeSettings
    clock: Clock
    log: EventLog
    changed: Callable[[], None]
    cpu_ns: Callable[[], int] = thread_cpu_ns


@dataclass(slots=True)
class SubscriberCounters:
    """Totals since the start.

    Attributes:
        messages: Live messages received.
        bytes: Their payload bytes, and those of replays.
        malformed: Messages and envelopes that could not be read, by cause.
        connects: Connections made.
        disconnects: Connections lost.
        failures: Unexpected exceptions.
        longest_away_ns: Longest time between two looks at sockets that had more to read.
        longest_away_cpu_ns: Most processor time between two such looks.
    """

    messages: int = 0
    bytes: int = 0
    malformed: dict[str, int] = field(default_factory=dict)
    connects: int = 0
    disconnects: int = 0
    failures: int = 0
    longest_away_ns: int = 0
    longest_away_cpu_ns: int = 0

    def note_away(self, away_ns: int, cpu_ns: int) -> None:
        """Keep the longest time between two looks, by the clock and by what was done meanwhile."""
        self.longest_away_ns = max(self.longest_away_ns, away_ns)
        self.longest_away_cpu_ns = max(self.longest_away_cpu_ns, cpu_ns)

    def count_malformed(self, cause: str) -> None:
        """Count something unreadable."""
        self.malformed[cause] = self.malformed.get(cause, 0) + 1
