"""Send evictions, one call each, many at a time, while stores go their own way.

Each call costs both sides far more than a block of an update does, so evictions wait here while a
server is busy. What happens meanwhile decides about them:

* a store of the same key in the same partition makes a waiting eviction needless;
* a clear of the replica makes all of its waiting evictions needless;
* a store must not overtake any other eviction of its key, whatever the partition, since an eviction
  in the base partition takes a key from all of them. Those are sent next, and it waits for them.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Final

import grpc
import grpc.aio

from inferencecache.clock import NS_PER_S
from inferencecache.settings.client import ClientSettings
from inferencecache.settings.delivery import DeliverySettings
from inferencecache.transport.client_channel import EVENT_METHOD
from inferencecache.transport.client_codec import decode_ack, encode_removal
from inferencecache.transport.client_values import NO_ACK, DeliveryError, Removal, ReplicaRef
from inferencecache.transport.delivery_backoff import Backoff
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

_FOR_GOOD: Final = frozenset({"INVALID_ARGUMENT", "OUT_OF_RANGE"})
"""Answers to what an event says, which the next attempt would get as well.

No others: a proxy that knows no way to the server for a moment says UNIMPLEMENTED, for instance.
"""


class EvictionPool:
    """Evictions under way to one server.

    Args:
        channel: An open channel of the running loop.
        target: Address of the server, for messages.
        client: How long one call may take.
        delivery: How many at a time, and pauses before repetitions.

    Attributes:
        acknowledged: Evictions acknowledged so far.
        withdrawn: Evictions that became needless before they were sent.
        refused: Evictions given up because the server refused what they say.
        failed: Told of every attempt that failed; the eviction is repeated unless it is given up.
        changed: Called after every acknowledgement, and when one was given up.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        target: str,
        client: ClientSettings,
        delivery: DeliverySettings,
    ) -> None:
        self.acknowledged = 0
        self.withdrawn = 0
        self.refused = 0
        self.failed: Callable[[DeliveryError], None] = _ignore
        self.changed: Callable[[], None] = _nothing
        self._target = target
        self._delivery = delivery
        self._timeout_s = client.delivery_timeout_ns / NS_PER_S
        self._calls_max = delivery.evictions_in_flight_max
        self._call: grpc.aio.UnaryUnaryMultiCallable[bytes, pb.Ack | None] = channel.unary_unary(
            EVENT_METHOD, None, decode_ack
        )
        # Ordered for its ends: the first is sent next, and one that must hurry becomes the first.
        self._waiting: OrderedDict[Removal, bytes] = OrderedDict()
        self._keys: Counter[bytes] = Counter()
        self._workers: set[asyncio.Task[None]] = set()
        self._settled = asyncio.Event()

    @property
    def size(self) -> int:
        """Distinct keys whose eviction is not acknowledged."""
        return len(self._keys)

    def add(self, removals: Iterable[Removal]) -> None:
        """Send *removals*, in any order among themselves.

        Raises:
            InvalidRequestError: One of them does not fit the wire; those before it are sent.
        """
        for removal in removals:
            if removal not in self._waiting:
                self._waiting[removal] = encode_removal(removal).SerializeToString()
                self._keys[_key(removal)] += 1
        while len(self._workers) < min(self._calls_max, len(self._waiting)):
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    def withdraw(self, removals: Iterable[Removal]) -> None:
        """Forget those of *removals* that wait."""
        for removal in removals:
            if self._waiting.pop(removal, None) is not None:
                self.withdrawn += 1
                self._forget(_key(removal))

    def withdraw_all(self, replica: ReplicaRef) -> None:
        """Forget what waits for *replica*."""
        self.withdraw([removal for removal in self._waiting if removal.replica == replica])

    def busiest(self) -> ReplicaRef | None:
        """Return the replica for which most evictions wait; None if none waits."""
        if not self._waiting:
            return None
        return Counter(removal.replica for removal in self._waiting).most_common(1)[0][0]

    async def until_at_most(self, keys_max: int) -> None:
        """Wait until no more than *keys_max* keys are under way."""
        while len(self._keys) > keys_max:
            await self._until_settled()

    async def until_gone(self, keys: AbstractSet[bytes]) -> None:
        """Send what waits for any of *keys* next, and wait until none of them is under way."""
        awaited = self._keys.keys() & keys
        if not awaited:
            return
        for removal in [removal for removal in self._waiting if _key(removal) in awaited]:
            self._waiting.move_to_end(removal, last=False)
        while not awaited.isdisjoint(self._keys):
            await self._until_settled()

    async def _until_settled(self) -> None:
        self._settled.clear()
        await self._settled.wait()

    def drop(self) -> None:
        """Forget everything that is under way; whether it arrives is open."""
        self._waiting.clear()
        self._keys.clear()
        for worker in self._workers:
            worker.cancel()
        self._workers.clear()
        self._settled.set()

    async def _work(self) -> None:
        backoff = Backoff(self._delivery)
        while self._waiting:
            removal, message = self._waiting.popitem(last=False)
            status = await self._send(message)
            if status is None:
                backoff.reset()
                self.acknowledged += 1
                self._forget(_key(removal))
                self.changed()
            elif status in _FOR_GOOD:
                self.refused += 1
                self._forget(_key(removal))
                self.changed()
                await self._pause(backoff)
            else:
                self._put_back(removal, message)
                await self._pause(backoff)

    async def _pause(self, backoff: Backoff) -> None:
        """Let some time pass after a failure, each of which somebody is told of."""
        await asyncio.sleep(backoff.next_ns() / NS_PER_S)

    def _put_back(self, removal: Removal, message: bytes) -> None:
        """Let *removal* be the next, unless a failure has just led to :meth:`drop`."""
        key = _key(removal)
        if key not in self._keys:
            return
        if removal in self._waiting:  # the same once more, for a store in between
            self._forget(key)
        self._waiting[removal] = message
        self._waiting.move_to_end(removal, last=False)

    def _forget(self, key: bytes) -> None:
        self._keys[key] -= 1
        if not self._keys[key]:
            del self._keys[key]
        self._settled.set()

    async def _send(self, message: bytes) -> str | None:
        """Send an eviction; return why it was not acknowledged, None if it was."""
        try:
            ack = await self._call(message, timeout=self._timeout_s)
        except grpc.aio.AioRpcError as error:
            return self._failed(error.code().name, error.details() or "")
        except grpc.aio.UsageError as error:
            return self._failed("CLOSED", str(error))
        if ack is None:
            return self._failed("INTERNAL", NO_ACK)
        if not ack.accepted:
            return self._failed("NOT_ACCEPTED", ack.reason_code or "the server refused")
        return None

    def _failed(self, status: str, detail: str) -> str:
        self.failed(
            DeliveryError(
                target=self._target, status=status, detail=detail, unconfirmed=len(self._keys)
            )
        )
        return status


def _key(removal: Removal) -> bytes:
    return removal.prefix_hash or b""


def _ignore(_error: DeliveryError) -> None:
    """Stand in until somebody listens."""


def _nothing() -> None:
    """Stand in until somebody listens."""
