"""Deliver reports over a blocking channel, with proof.

A report is a message on a long client stream, and only the Ack at the stream's end proves that
the server took it. gRPC reads the stream's messages from an iterator on a thread of its own, so
:class:`UpdateFeed` stands between that thread and the callers.
"""

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Never

import grpc

from inferencecache.clock import NS_PER_S
from inferencecache.settings.client import ClientSettings
from inferencecache.transport.client_codec import encode_removal, encode_update
from inferencecache.transport.client_values import CacheUpdate, DeliveryError, Removal
from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1.inferencecache_pb2_grpc import InferenceCacheStub


class UpdateFeed(Iterator[pb.CacheStateUpdate]):
    """A bounded queue that one thread fills and gRPC's thread empties.

    Args:
        updates_max: Messages queued before :meth:`put` waits.
    """

    def __init__(self, updates_max: int) -> None:
        self._updates_max = updates_max
        self._queue: deque[pb.CacheStateUpdate] = deque()
        self._is_closed = False
        self._is_abandoned = False
        self._is_exhausted = False
        self._changed = threading.Condition()

    @property
    def is_exhausted(self) -> bool:
        """Tell whether gRPC took every message and the end after them."""
        return self._is_exhausted

    def put(self, message: pb.CacheStateUpdate, timeout_s: float) -> bool:
        """Queue *message*; return False if the stream is over or stays full for *timeout_s*."""
        with self._changed:
            self._changed.wait_for(self._can_put, timeout_s)
            if self._is_abandoned or len(self._queue) >= self._updates_max:
                return False
            self._queue.append(message)
            self._changed.notify_all()
            return True

    def close(self) -> None:
        """End the stream after what is queued."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def abandon(self, _call: object = None) -> None:
        """Give up: the call is over, nobody will take the rest."""
        with self._changed:
            self._is_abandoned = True
            self._changed.notify_all()

    def __next__(self) -> pb.CacheStateUpdate:
        with self._changed:
            self._changed.wait_for(self._can_take)
            if self._queue and not self._is_abandoned:
                self._changed.notify_all()
                return self._queue.popleft()
            self._is_exhausted = not self._is_abandoned
            raise StopIteration

    def _can_put(self) -> bool:
        return self._is_abandoned or len(self._queue) < self._updates_max

    def _can_take(self) -> bool:
        return bool(self._queue) or self._is_closed or self._is_abandoned


class ReportLine:
    """One ordered line of reports to a server; not safe for several threads.

    Args:
        channel: An open channel, shared or not.
        target: Address of the server, for messages.
        settings: Queue bound and timeouts.
    """

    def __init__(self, channel: grpc.Channel, target: str, settings: ClientSettings) -> None:
        self._stub = InferenceCacheStub(channel)
        self._target = target
        self._updates_max = settings.unsent_updates_max
        self._events_max = settings.events_in_flight_max
        self._timeout_s = settings.delivery_timeout_ns / NS_PER_S
        self._feed: UpdateFeed | None = None
        self._call: grpc.Future[pb.Ack] | None = None
        self._unconfirmed = 0

    @property
    def unconfirmed(self) -> int:
        """Return how many updates were handed over since the last proof."""
        return self._unconfirmed

    def send(self, update: CacheUpdate) -> None:
        """Hand *update* to the open stream, opening one if need be.

        Raises:
            DeliveryError: The stream broke, or the server takes nothing for too long.
            InvalidRequestError: *update* does not fit the wire.
        """
        message = encode_update(update)
        feed, call = self._open()
        self._unconfirmed += 1
        if not feed.put(message, self._timeout_s):
            self._fail(call)

    def confirm(self) -> None:
        """End the stream and wait for the Ack; do nothing if nothing is unconfirmed.

        Raises:
            DeliveryError: There was no Ack, or it came before the end or refused.
        """
        if self._feed is None or self._call is None:
            return
        feed, call = self._feed, self._call
        feed.close()
        try:
            ack = call.result(timeout=self._timeout_s)
        except (grpc.RpcError, grpc.FutureTimeoutError, grpc.FutureCancelledError):
            self._fail(call)
        self._check(ack, is_complete=feed.is_exhausted)
        self._reset()

    def publish(self, removals: Iterable[Removal]) -> None:
        """Publish *removals* and wait for every Ack; their order among themselves is free.

        Raises:
            DeliveryError: One of them was not acknowledged.
            InvalidRequestError: One of them does not fit the wire.
        """
        pending = iter(removals)
        while batch := [encode_removal(r) for r in islice(pending, self._events_max)]:
            self._unconfirmed += len(batch)
            self._publish_batch(batch)
            self._unconfirmed -= len(batch)

    def close(self) -> None:
        """Drop what is unconfirmed and free the stream."""
        if self._call is not None:
            self._call.cancel()
        self._reset()

    def _open(self) -> "tuple[UpdateFeed, grpc.Future[pb.Ack]]":
        if self._feed is None or self._call is None:
            self._feed = UpdateFeed(self._updates_max)
            try:
                self._call = self._stub.ReportCacheState.future(self._feed)
            except ValueError as error:  # how a closed grpc.Channel answers
                self._raise("CLOSED", str(error))
            self._call.add_done_callback(self._feed.abandon)
        return self._feed, self._call

    def _publish_batch(self, batch: Sequence[pb.CacheEvent]) -> None:
        try:
            calls = [self._stub.PublishEvent.future(m, timeout=self._timeout_s) for m in batch]
        except ValueError as error:
            self._raise("CLOSED", str(error))
        for call in calls:
            try:
                ack = call.result()
            except (grpc.RpcError, grpc.FutureCancelledError):
                self._fail(call)
            self._check(ack, is_complete=True)

    def _check(self, ack: pb.Ack, *, is_complete: bool) -> None:
        if not ack.accepted:
            self._raise("NOT_ACCEPTED", ack.reason_code or "the server refused")
        if not is_complete:
            self._raise("ENDED_EARLY", "the server ended the stream before its last report")

    def _fail(self, call: "grpc.Future[pb.Ack]") -> Never:
        if not call.done():
            call.cancel()
            self._raise("DEADLINE_EXCEEDED", f"no progress for {self._timeout_s:g} s")
        assert isinstance(call, grpc.Call), "a call that ended knows its status"  # noqa: S101 - ours
        if call.code() is grpc.StatusCode.OK:
            self._raise("ENDED_EARLY", "the server ended the stream before its last report")
        self._raise(call.code().name, call.details() or "")

    def _raise(self, status: str, detail: str) -> Never:
        unconfirmed = self._unconfirmed
        self._reset()
        raise DeliveryError(
            target=self._target, status=status, detail=detail, unconfirmed=unconfirmed
        )

    def _reset(self) -> None:
        self._feed = self._call = None
        self._unconfirmed = 0
