"""Say once per outage why an engine cannot be heard, in the words of the doctor.

A ZMQ socket connects for ever and tells nothing of who refuses it. So when it has not come through
for a while, its port is looked at as the doctor would look at it.
"""

from collections.abc import Iterable
from typing import Final

from inferencecache.app.doctor_findings import Finding, finding
from inferencecache.app.doctor_reach import judge_engine_port, judge_replay_port
from inferencecache.events import SyncState
from inferencecache.transport.doctor_port import look_at_port
from inferencecache.transport.structured_log import EventLog
from inferencecache.transport.subscriber import Subscriber

_TIMEOUT_S: Final = 2.0
_LOOKS_WITHOUT: Final = 3
_UNANSWERED_MAX: Final = 2
_TCP: Final = "tcp://"
_NOT_CONNECTED: Final = "nobody answers there; only the ports of tcp:// can be looked at further"
_REPLAY_STANDS: Final = "a ROUTER listens there and gives no answer"


class Reach:
    """Watches the connections of subscribers.

    Args:
        log: Where it is said.
    """

    def __init__(self, log: EventLog) -> None:
        self._log: Final = log
        self._looks: dict[str, int] = {}
        self._replays_missed: set[str] = set()

    async def look(self, subscribers: Iterable[Subscriber]) -> None:
        """Look at all; to be called about once a second."""
        for subscriber in subscribers:
            await self._look_at_events(subscriber)
            await self._look_at_replay(subscriber)

    async def _look_at_events(self, subscriber: Subscriber) -> None:
        name, endpoint = subscriber.parts.name, subscriber.parts.endpoint
        if subscriber.tracker.state is not SyncState.CONNECTING:
            self._looks[name] = 0
            return
        self._looks[name] = self._looks.get(name, 0) + 1
        if self._looks[name] == _LOOKS_WITHOUT:
            self._say("engine_unreachable", name, endpoint, await _judge_events(endpoint))

    async def _look_at_replay(self, subscriber: Subscriber) -> None:
        name, endpoint = subscriber.parts.name, subscriber.parts.replay_endpoint
        if subscriber.unanswered_replays < _UNANSWERED_MAX:
            self._replays_missed.discard(name)
        elif name not in self._replays_missed:
            self._replays_missed.add(name)
            self._say("replay_unanswered", name, endpoint, await _judge_replay(endpoint))

    def _say(self, event: str, source: str, endpoint: str, found: Finding) -> None:
        self._log.warning(
            event, source=source, endpoint=endpoint, code=found.code, reason=found.message
        )


async def _judge_events(endpoint: str) -> Finding:
    if not endpoint.startswith(_TCP):
        return finding("EC003", endpoint, _NOT_CONNECTED)
    return judge_engine_port(await look_at_port(endpoint, _TIMEOUT_S))


async def _judge_replay(endpoint: str) -> Finding:
    if not endpoint.startswith(_TCP):
        return finding("EY003", endpoint, _NOT_CONNECTED)
    found = judge_replay_port(await look_at_port(endpoint, _TIMEOUT_S))
    return found or finding("EY003", endpoint, _REPLAY_STANDS)
