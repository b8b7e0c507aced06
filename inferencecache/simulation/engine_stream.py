"""The numbered messages of one simulated publisher, and what its replay socket answers."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from inferencecache.simulation.engine_event import EngineEvent
from inferencecache.simulation.engine_layout import EngineLayout, HashForm
from inferencecache.simulation.event_payload import encode_batch

END_MARK: Final = b"\xff" * 8
NUMBER_BYTES: Final = 8
_REQUEST_FRAMES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRules:
    """How one publisher writes.

    Attributes:
        layout: The release's form.
        hash_form: How labels are written.
        topic: What messages are published under.
        ring_batches: Messages kept for replay.
        has_end_mark: Whether a replay says that it is over.
    """

    layout: EngineLayout
    hash_form: HashForm
    topic: str = "kv-events"
    ring_batches: int = 10_000
    has_end_mark: bool = True


@dataclass(frozen=True, slots=True)
class Message:
    """One numbered message.

    Attributes:
        number: Its sequence number in the publisher's life.
        payload: The batch.
    """

    number: int
    payload: bytes

    def frames(self, topic: str) -> list[bytes]:
        """Return what the publisher sends."""
        return [topic.encode(), self.number.to_bytes(NUMBER_BYTES, "big"), self.payload]


class EngineStream:
    """Numbers messages and keeps the last ones.

    Args:
        rules: How messages are written.
        rank: Data-parallel rank.
    """

    def __init__(self, rules: StreamRules, rank: int = 0) -> None:
        self.rules = rules
        self._rank = rank
        self._number = 0
        self._ring: deque[Message] = deque(maxlen=rules.ring_batches)

    @property
    def next_number(self) -> int:
        """The number of the next message."""
        return self._number

    def publish(self, events: Sequence[EngineEvent], ts: float) -> Message:
        """Number a message and keep it for replay.

        Args:
            events: What happened, in order.
            ts: The engine's time in seconds since 1970.
        """
        rules = self.rules
        payload = encode_batch(events, rules.layout, rules.hash_form, self._rank, ts)
        message = Message(self._number, payload)
        self._number += 1
        self._ring.append(message)
        return message

    def burn(self) -> None:
        """Use a number up, as when a batch cannot be encoded: no replay will ever have it."""
        self._number += 1

    def latest(self) -> Message | None:
        """Return the message published last in this life, if it is still kept."""
        return self._ring[-1] if self._ring else None

    def restart(self) -> None:
        """Begin another life at number 0 with nothing to replay."""
        self._number = 0
        self._ring.clear()

    def replay(self, request: Sequence[bytes]) -> Iterator[list[bytes]]:
        """Yield the answer to a replay request, without the frame that names the asker.

        Args:
            request: What followed that frame; requests of another shape get no answer.
        """
        if len(request) != _REQUEST_FRAMES:
            return
        start = int.from_bytes(request[1], "big")
        topic = [self.rules.topic.encode()] if self.rules.layout.replay_has_topic else []
        for message in list(self._ring):
            if message.number >= start:
                number = message.number.to_bytes(NUMBER_BYTES, "big")
                yield [b"", *topic, number, message.payload]
        if self.rules.has_end_mark:
            yield [b"", *([b""] if topic else []), END_MARK, b""]
