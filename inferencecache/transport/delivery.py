"""Tell one server what replicas hold, and make sure that it knows.

Theory of operation
-------------------
Changes gather in lanes, one per replica. Again and again a *round* is taken from all lanes and
sent: clears, then updates on one stream, which is ended for its Ack. Only then is the next round
taken, so nothing is forgotten before the server has it. A round that fails is repeated as it is,
after a pause. Evictions of a round need a call each and may take longer than a round; they are sent
beside the updates, and updates wait for them only if both are about the same key. An eviction never
overtakes an earlier store, since that was acknowledged rounds ago.

A connection that was lost may lead to another server, or to the same one with an empty memory. So
what is pending is dropped, and when the connection is back every lane begins with a clear and the
whole live set, read in pieces.

Rules of this file
------------------
* Two tasks: one watches the connection, one sends. Both may find it lost; ``_lose`` may thus be
  called twice for one loss, and only the first counts.
* Nothing is sent for a lane whose outbox waits for its live set, except that clear.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

import grpc

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.errors import InvalidRequestError
from inferencecache.settings.client import ClientSettings
from inferencecache.settings.delivery import DeliverySettings
from inferencecache.settings.producer import OutboxSettings
from inferencecache.transport import delivery_wire as wire
from inferencecache.transport.client_channel import open_async_channel
from inferencecache.transport.client_report_async import AsyncReportLine
from inferencecache.transport.client_values import (
    DeliveryError,
    LookupFailure,
    ReplicaRef,
)
from inferencecache.transport.delivery_backoff import Backoff
from inferencecache.transport.delivery_counters import EVENT_METHOD, REPORT_METHOD, LinkCounters
from inferencecache.transport.delivery_evictions import EvictionPool
from inferencecache.transport.delivery_lane import Lane, LaneParts
from inferencecache.transport.lookup_client import AsyncLookupCaller
from inferencecache.transport.structured_log import EventLog
from inferencecache.transport.unreachable import REACH_QUERY, why_unreachable

_ASKING_S: Final = 1.0
_EVICTIONS_PER_STEP: Final = 512
_LOST: Final = frozenset({"UNAVAILABLE", "STREAM_BROKEN", "ENDED_EARLY", "CLOSED", "CANCELLED"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkParts:
    """What a link works with.

    Attributes:
        target: Address of the server.
        delivery: Repetition and renewal.
        outbox: Bounds of what is pending, and the window.
        client: The connection.
        credentials: What it is made with; None means plaintext.
        clock: Time.
        log: Where things that matter to an operator are told.
        changed: Called after anything happened.
    """

    target: str
    delivery: DeliverySettings
    outbox: OutboxSettings
    client: ClientSettings
    credentials: grpc.ChannelCredentials | None
    clock: Clock
    log: EventLog
    changed: Callable[[], None]


class ServerLink:
    """The way to one server.

    Args:
        parts: What it works with.

    Attributes:
        is_up: Whether the server is reachable.
        counters: What happened so far.
    """

    def __init__(self, parts: LinkParts) -> None:
        self.parts: Final = parts
        self.is_up = False
        self.counters = LinkCounters()
        self._lanes: dict[ReplicaRef, Lane] = {}
        self._channel = open_async_channel(parts.target, parts.client, parts.credentials)
        self._caller = AsyncLookupCaller(self._channel)
        self._has_complained = False
        self._line = AsyncReportLine(self._channel, parts.target, parts.client)
        self._evictions = EvictionPool(self._channel, parts.target, parts.client, parts.delivery)
        self._evictions.failed = self._eviction_failed
        self._evictions.changed = parts.changed
        self._backoff = Backoff(parts.delivery)
        self._lost_backoff = Backoff(parts.delivery)
        self._gained_ns = parts.clock.monotonic_ns()
        self._changed = asyncio.Event()
        self._sending: wire.Round = []
        self._renewed_ns = parts.clock.monotonic_ns()
        self._fed_ns = self._renewed_ns

    @property
    def is_away(self) -> bool:
        """Whether the server could not be reached; False while the first attempt is under way."""
        return not self.is_up and (self._has_complained or self.counters.losses > 0)

    @property
    def is_told(self) -> bool:
        """Whether the server has acknowledged everything so far."""
        if not self.is_up or self._sending or self._evictions.size:
            return False
        return all(map(_is_told, self._lanes.values()))

    @property
    def evicted_keys(self) -> int:
        """Keys acknowledged as evicted."""
        return self._evictions.acknowledged

    @property
    def refused_evictions(self) -> int:
        """Evictions that the server refused for good."""
        return self._evictions.refused

    @property
    def coalesced_keys(self) -> int:
        """Changes that a later one made unnecessary before they were sent."""
        gathered = sum(lane.outbox.coalesced_keys for lane in self._lanes.values())
        return gathered + self._evictions.withdrawn

    @property
    def pending_keys(self) -> int:
        """Keys with a change that is not sent, or not acknowledged if it is an eviction."""
        pending = sum(lane.outbox.pending_keys for lane in self._lanes.values())
        return pending + self._evictions.size

    def lanes(self) -> Iterator[Lane]:
        """Yield the lanes in order of replica."""
        for _, lane in sorted(self._lanes.items()):
            yield lane

    def lane(self, parts: LaneParts) -> Lane:
        """Return the lane of a replica, made on first use."""
        found = self._lanes.get(parts.replica)
        if found is None:
            clear = self.parts.delivery.clear_on_start
            found = Lane(parts, self.parts.outbox, starts_clear=clear)
            self._lanes[parts.replica] = found
            self.wake()
        return found

    def wake(self) -> None:
        """Look for work again."""
        self._changed.set()

    async def run(self) -> None:
        """Tell the server for ever; ends by being cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch(), name=f"watch {self.parts.target}")
            tasks.create_task(self._tell(), name=f"tell {self.parts.target}")

    async def close(self) -> None:
        """Drop what is pending and close the connection."""
        self._evictions.drop()
        self._line.close()
        await self._channel.close()

    # ------------------------------------------------------------------ connection

    async def _watch(self) -> None:
        while True:
            state = self._channel.get_state(try_to_connect=True)
            if state is grpc.ChannelConnectivity.READY:
                self._gain()
            elif state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                await self._complain()
            await self._channel.wait_for_state_change(state)
            if state is grpc.ChannelConnectivity.READY:
                self._lose()

    async def _complain(self) -> None:
        """Say once per outage why the server cannot be reached."""
        if self.is_up or self._has_complained:
            return
        self._has_complained = True
        self.parts.log.warning(
            "server_unreachable",
            server=self.parts.target,
            reason=why_unreachable(await self._failure()),
        )
        self.parts.changed()

    async def _failure(self) -> str:
        """Return what gRPC says to a call on a connection that cannot be made; it fails at once."""
        outcome = await self._caller.ask(REACH_QUERY, _ASKING_S)
        return outcome.detail if isinstance(outcome, LookupFailure) else ""

    def _gain(self) -> None:
        self._has_complained = False
        if not self.is_up:
            self.is_up = True
            self._gained_ns = self.parts.clock.monotonic_ns()
            self.parts.log.info("server_connected", server=self.parts.target)
            self._stir()

    def _lose(self) -> None:
        if not self.is_up:
            return
        self.is_up = False
        if self.parts.clock.monotonic_ns() - self._gained_ns > self.parts.delivery.retry_max_ns:
            self._lost_backoff.reset()
        self.counters.losses += 1
        self.parts.log.warning("server_lost", server=self.parts.target)
        self._evictions.drop()
        for lane in self._lanes.values():
            lane.lose()
        self._stir()

    def _stir(self) -> None:
        self._changed.set()
        self.parts.changed()

    # ------------------------------------------------------------------ rounds

    async def _tell(self) -> None:
        while True:
            await self._wait_for_work()
            await self._prepare()
            if self.is_up:
                await self._take()
            if self._sending:
                await self._deliver()
                self.parts.changed()
            if not self.is_up:
                await self._look_again()

    async def _look_again(self) -> None:
        """After a pause, go on if only a call was lost and the connection is still there.

        Everything is sent anew then, and a server may take that and lose every eviction.
        """
        await asyncio.sleep(self._lost_backoff.next_ns() / NS_PER_S)
        if self._channel.get_state() is grpc.ChannelConnectivity.READY:
            self._gain()

    async def _wait_for_work(self) -> None:
        """Wait until a window after the first change, until much is pending, or for a loss."""
        losses = self.counters.losses
        while self.counters.losses == losses:
            self._changed.clear()
            wait_ns = self._wait_ns()
            if wait_ns == 0:
                return
            try:
                async with asyncio.timeout(None if wait_ns is None else wait_ns / NS_PER_S):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _wait_ns(self) -> int | None:
        """Return how long to wait for work; None for as long as nothing changes."""
        if not self.is_up:
            return None
        now_ns = self.parts.clock.monotonic_ns()
        renewal_ns = self._renew(now_ns)
        working = [lane for lane in self._lanes.values() if lane.has_work]
        if not working:
            return renewal_ns
        if sum(lane.outbox.pending_keys for lane in working) >= self.parts.delivery.resync_keys_max:
            return 0
        firsts = (lane.wanted_since_ns(self._fed_ns) for lane in working)
        return max(min(firsts) + self.parts.outbox.window_ns - now_ns, 0)

    def _renew(self, now_ns: int) -> int | None:
        """Begin the slow repetition when it is due; return how long until it is next."""
        interval_ns = self.parts.delivery.refresh_interval_ns
        if not interval_ns:
            return None
        if now_ns - self._renewed_ns >= interval_ns:
            self._renewed_ns = now_ns
            self.counters.renewals += 1
            for lane in self._lanes.values():
                lane.renew()
        return self._renewed_ns + interval_ns - now_ns

    async def _prepare(self) -> None:
        """Queue what belongs to the live set and to the slow repetition, up to their bounds."""
        now_ns = self.parts.clock.monotonic_ns()
        allowance = self._allowance(now_ns)
        self._fed_ns = now_ns
        for lane in list(self._lanes.values()):
            if self.is_up and lane.resume():
                self.counters.resyncs += 1
            for _ in lane.prepare_resync(self.parts.delivery.resync_keys_max):
                await asyncio.sleep(0)
            for queued in lane.prepare_renewal(allowance):
                allowance -= queued
                await asyncio.sleep(0)

    def _allowance(self, now_ns: int) -> int:
        """Return how many keys the slow repetition may have since it was last fed."""
        keys = self.parts.delivery.refresh_keys_per_s * (now_ns - self._fed_ns) // NS_PER_S
        return min(max(keys, 1), self.parts.delivery.resync_keys_max)

    async def _take(self) -> None:
        self._sending = []
        delivery = self.parts.delivery
        for lane in list(self.lanes()):
            found = lane.take(delivery.round_keys_max, delivery.round_chains_max)
            if found is not None:
                self._sending.append((lane.parts, found))
                await asyncio.sleep(0)

    async def _deliver(self) -> None:
        """Send the round until it succeeds, or until the connection is lost."""
        try:
            await self._order()
            while self.is_up and not await self._is_over():
                continue
        except InvalidRequestError:
            self.counters.refused += 1
            self.parts.log.exception("delivery_refused", server=self.parts.target)
        self._sending = []

    async def _is_over(self) -> bool:
        """Send the round; False, after a pause, if that has to be repeated."""
        method = EVENT_METHOD
        try:
            await self._line.publish(wire.clears(self._sending))
            method = REPORT_METHOD
            await self._report()
        except DeliveryError as error:
            self._note_failure(error, method)
            if error.status not in _LOST:
                await asyncio.sleep(self._backoff.next_ns() / NS_PER_S)
                return False
            self._lose()
        else:
            self._note_success()
        return True

    async def _report(self) -> None:
        for update in wire.updates(self._sending, self.parts.outbox.update_blocks_max):
            await self._line.send(update)
        await self._line.confirm()

    async def _order(self) -> None:
        """Begin the round's evictions; wait for those that its stores must not overtake."""
        for replica in wire.cleared(self._sending):
            self._evictions.withdraw_all(replica)
        if self._evictions.size:
            self._evictions.withdraw(wire.stored(self._sending))
        evictions = wire.evictions(self._sending)
        self._evictions.add(islice(evictions, _EVICTIONS_PER_STEP))
        for removal in evictions:
            await asyncio.sleep(0)
            self._evictions.add(chain((removal,), islice(evictions, _EVICTIONS_PER_STEP)))
        if self._evictions.size:
            await self._evictions.until_gone(set(chain(*wire.stored_hashes(self._sending))))
        while self._evictions.size > self.parts.delivery.evictions_max:
            busiest = self._evictions.busiest()
            if busiest is None:
                break
            # A clear and what is held cost less than a call for each key that is gone.
            self._evictions.withdraw_all(busiest)
            self._lanes[busiest].lose()

    def _eviction_failed(self, error: DeliveryError) -> None:
        self._note_failure(error, EVENT_METHOD)
        if error.status in _LOST:
            self._lose()

    def _note_success(self) -> None:
        self._backoff.reset()
        self.counters.rounds += 1
        self.counters.stored_keys += wire.stored_keys(self._sending)

    def _note_failure(self, error: DeliveryError, method: str) -> None:
        self.counters.failed_calls[method] += 1
        self.parts.log.warning(
            "delivery_failed",
            server=error.target,
            method=method,
            status=error.status,
            detail=error.detail,
        )


def _is_told(lane: Lane) -> bool:
    return lane.is_told
