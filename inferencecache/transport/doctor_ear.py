"""Listen to an engine for a while, and ask it for its past, without keeping much of either."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import zmq
import zmq.asyncio

from inferencecache.errors import MalformedEventError
from inferencecache.events import live_frame, replay_frame, replay_request

KEPT_MAX: Final = 256
"""Messages kept of a stream or a replay; the rest is only counted."""

_TOPIC_SHAPE: Final = 4
_MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024


@dataclass(slots=True, kw_only=True)
class Heard:
    """What an engine said.

    Attributes:
        topics: Topic to number of messages under it.
        numbers: Sequence numbers in order of arrival.
        payloads: The first payloads.
        malformed: Messages whose parts are not those of an engine.
    """

    topics: dict[str, int] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)
    payloads: list[bytes] = field(default_factory=list)
    malformed: int = 0


@dataclass(slots=True, kw_only=True)
class Past:
    """What a replay gave.

    Attributes:
        numbers: Sequence numbers in order of arrival.
        payloads: The first payloads.
        has_end: Whether the end was announced.
        has_topic: Whether messages carried the topic.
        malformed: Messages whose parts are not those of a replay.
    """

    numbers: list[int] = field(default_factory=list)
    payloads: list[bytes] = field(default_factory=list)
    has_end: bool = False
    has_topic: bool = False
    malformed: int = 0

    @property
    def is_answered(self) -> bool:
        """Whether anything came at all."""
        return bool(self.numbers or self.has_end or self.malformed)


async def listen(endpoint: str, seconds: float, is_enough: Callable[[str, bytes], bool]) -> Heard:
    """Subscribe to every topic at *endpoint*.

    Args:
        endpoint: Where the engine publishes.
        seconds: How long to listen.
        is_enough: Told topic and payload of each message; True ends the listening early.
    """
    heard = Heard()
    context = zmq.asyncio.Context()
    try:
        subscriber = _open(context, zmq.SUB, endpoint)
        subscriber.subscribe(b"")
        async with asyncio.timeout(seconds):
            while not _take(heard, await subscriber.recv_multipart(), is_enough):
                pass
    except TimeoutError:
        return heard
    finally:
        context.destroy(linger=0)
    return heard


async def ask_for_past(endpoint: str, silence_s: float, total_s: float) -> Past:
    """Ask for everything an engine still has.

    Args:
        endpoint: Where the engine answers replays.
        silence_s: Give up when nothing comes for so many seconds.
        total_s: Give up after so many seconds in any case.
    """
    past = Past()
    context = zmq.asyncio.Context()
    try:
        dealer = _open(context, zmq.DEALER, endpoint)
        await dealer.send_multipart(replay_request(0))
        async with asyncio.timeout(total_s):
            while not past.has_end:
                async with asyncio.timeout(silence_s):
                    parts = await dealer.recv_multipart()
                _remember(past, parts)
    except TimeoutError:
        return past
    finally:
        context.destroy(linger=0)
    return past


def _open(context: zmq.asyncio.Context, kind: int, endpoint: str) -> zmq.asyncio.Socket:
    socket = context.socket(kind)
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.setsockopt(zmq.MAXMSGSIZE, _MESSAGE_BYTES_MAX)
    socket.setsockopt(zmq.IPV6, 1)
    socket.connect(endpoint)
    return socket


def _take(heard: Heard, parts: list[bytes], is_enough: Callable[[str, bytes], bool]) -> bool:
    topic = parts[0].decode("utf-8", "replace")
    heard.topics[topic] = heard.topics.get(topic, 0) + 1
    try:
        frame = live_frame(parts)
    except MalformedEventError:
        heard.malformed += 1
        return False
    heard.numbers.append(frame.number)
    if len(heard.payloads) < KEPT_MAX:
        heard.payloads.append(frame.payload)
    return is_enough(topic, frame.payload)


def _remember(past: Past, parts: list[bytes]) -> None:
    past.has_topic = past.has_topic or len(parts) >= _TOPIC_SHAPE
    try:
        frame = replay_frame(parts)
    except MalformedEventError:
        past.malformed += 1
        return
    if frame is None:
        past.has_end = True
        return
    past.numbers.append(frame.number)
    if len(past.payloads) < KEPT_MAX:
        past.payloads.append(frame.payload)
