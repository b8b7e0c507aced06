"""Send evictions, one call each, many at a time, while stores go their own way.

A store may overtake an eviction of another key, not one of the same key: who sends stores asks
:meth:`EvictionPool.has_any` first. Adapters do not matter for that, since an eviction in the base
partition takes a key from all of them.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from typing import Final

import grpc
import grpc.aio

from inferencecache.clock import NS_PER_S
from inferencecache.settings.client import ClientSettings
from inferencecache.settings.delivery import DeliverySettings
from inferencecache.transport.client_channel import SERVICE_NAME
from inferencecache.transport.client_codec import encode_removal
from inferencecache.transport.client_values import DeliveryError, Removal
from inferencecache.transport.delivery_backoff import Backoff
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

_METHOD: Final = f"/{SERVICE_NAME}/PublishEvent"


class EvictionPool:
    """Evictions under way to one server.

    Args:
        channel: An open channel of the running loop.
        target: Address of the server, for messages.
        client: How long one call may take.
        delivery: How many at a time, and pauses before repetitions.

    Attributes:
        acknowledged: Evictions acknowledged so far.
        failed: Told of every attempt that failed; the eviction is repeated unless it is dropped.
        changed: Called after every acknowledgement.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        target: str,
        client: ClientSettings,
        delivery: DeliverySettings,
    ) -> None:
        self.acknowledged = 0
        self.failed: Callable[[DeliveryError], None] = _ignore
        self.changed: Callable[[], None] = _nothing
        self._target = target
        self._delivery = delivery
        self._timeout_s = client.delivery_timeout_ns / NS_PER_S
        self._calls_max = delivery.evictions_in_flight_max
        self._call: grpc.aio.UnaryUnaryMultiCallable[bytes, pb.Ack] = channel.unary_unary(
            _METHOD, None, pb.Ack.FromString
        )
        self._waiting: deque[tuple[bytes, bytes]] = deque()
        self._keys: Counter[bytes] = Counter()
        self._workers: set[asyncio.Task[None]] = set()
        self._settled = asyncio.Event()

    @property
    def size(self) -> int:
        """Distinct keys whose eviction is not acknowledged."""
        return len(self._keys)

    def has_any(self, keys: Iterable[Collection[bytes]]) -> bool:
        """Tell whether one of *keys* is still to be evicted."""
        return bool(self._keys) and any(key in self._keys for group in keys for key in group)

    def add(self, removals: Iterable[Removal]) -> None:
        """Send *removals*, in any order among themselves."""
        for removal in removals:
            key = removal.prefix_hash or b""
            self._keys[key] += 1
            self._waiting.append((key, encode_removal(removal).SerializeToString()))
        while len(self._workers) < min(self._calls_max, len(self._waiting)):
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def until_at_most(self, keys_max: int) -> None:
        """Wait until no more than *keys_max* keys are under way."""
        while len(self._keys) > keys_max:
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
            key, message = self._waiting.popleft()
            if await self._is_acknowledged(message):
                backoff.reset()
                self._note_done(key)
            else:
                if key in self._keys:  # unless a failure has just led to ``drop``
                    self._waiting.appendleft((key, message))
                await asyncio.sleep(backoff.next_ns() / NS_PER_S)

    def _note_done(self, key: bytes) -> None:
        self.acknowledged += 1
        self._keys[key] -= 1
        if not self._keys[key]:
            del self._keys[key]
        self._settled.set()
        self.changed()

    async def _is_acknowledged(self, message: bytes) -> bool:
        try:
            ack = await self._call(message, timeout=self._timeout_s)
        except grpc.aio.AioRpcError as error:
            self._fail(error.code().name, error.details() or "")
            return False
        except grpc.aio.UsageError as error:
            self._fail("CLOSED", str(error))
            return False
        if not ack.accepted:
            self._fail("NOT_ACCEPTED", ack.reason_code or "the server refused")
        return ack.accepted

    def _fail(self, status: str, detail: str) -> None:
        self.failed(
            DeliveryError(
                target=self._target, status=status, detail=detail, unconfirmed=len(self._keys)
            )
        )


def _ignore(_error: DeliveryError) -> None:
    """Stand in until somebody listens."""


def _nothing() -> None:
    """Stand in until somebody listens."""
