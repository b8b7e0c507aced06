"""Report what replicas hold, in order, with proof on demand.

Rules of this file: reports and removals travel on different calls, and a server may serve two
calls in any order. So a removal first waits until the server has confirmed all reports before it,
and a report starts only after every removal before it was acknowledged. Removals of one call of
``evict`` do not depend on each other and travel together.
"""

import asyncio
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from inferencecache.transport.client_report import ReportLine
from inferencecache.transport.client_report_async import AsyncReportLine
from inferencecache.transport.client_values import CacheUpdate, Removal, ReplicaRef


class Reporter:
    """Report from threads; made by :meth:`CacheClient.reporter`.

    One reporter is one ordered line. Replicas that report independently get one each; they share
    the client's connection.
    """

    def __init__(self, line: ReportLine) -> None:
        self._line = line
        self._lock = threading.Lock()

    @property
    def unconfirmed(self) -> int:
        """Return how many updates were handed over since the last proof of delivery."""
        return self._line.unconfirmed

    def report(self, update: CacheUpdate) -> None:
        """Hand *update* over; :meth:`flush` tells whether it arrived.

        Raises:
            DeliveryError: The server is gone or takes nothing for too long.
            InvalidRequestError: *update* does not fit the wire.
        """
        with self._lock:
            self._line.send(update)

    def evict(
        self,
        replica: ReplicaRef,
        prefix_hashes: Iterable[bytes],
        *,
        adapter_id: str = "",
        timestamp_ns: int = 0,
    ) -> None:
        """Tell that *replica* dropped some blocks; on return the server knows.

        Args:
            replica: Who dropped them.
            prefix_hashes: The blocks, in any order.
            adapter_id: Only in this adapter's partition; empty means in every one.
            timestamp_ns: Unix time in nanoseconds; 0 means now.

        Raises:
            DeliveryError: The server is gone or did not acknowledge in time.
        """
        with self._lock:
            self._line.confirm()
            self._line.publish(
                Removal(replica, prefix_hash, adapter_id, timestamp_ns)
                for prefix_hash in prefix_hashes
            )

    def clear(self, replica: ReplicaRef, *, timestamp_ns: int = 0) -> None:
        """Tell that *replica* dropped everything; on return the server knows.

        Raises:
            DeliveryError: The server is gone or did not acknowledge in time.
        """
        with self._lock:
            self._line.confirm()
            self._line.publish([Removal(replica, None, "", timestamp_ns)])

    def flush(self) -> None:
        """Return once the server has confirmed every report so far.

        Raises:
            DeliveryError: It did not; reports since the last confirmation may be lost.
        """
        with self._lock:
            self._line.confirm()

    def close(self) -> None:
        """Drop what is unconfirmed; call :meth:`flush` first to keep it."""
        with self._lock:
            self._line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.flush()
        self.close()


class AsyncReporter:
    """Report from an event loop; made by :meth:`AsyncCacheClient.reporter`.

    Otherwise as :class:`Reporter`.
    """

    def __init__(self, line: AsyncReportLine) -> None:
        self._line = line
        self._lock = asyncio.Lock()

    @property
    def unconfirmed(self) -> int:
        """Return how many updates were handed over since the last proof of delivery."""
        return self._line.unconfirmed

    async def report(self, update: CacheUpdate) -> None:
        """Hand *update* over; :meth:`flush` tells whether it arrived.

        Raises:
            DeliveryError: The server is gone or takes nothing for too long.
            InvalidRequestError: *update* does not fit the wire.
        """
        async with self._lock:
            await self._line.send(update)

    async def evict(
        self,
        replica: ReplicaRef,
        prefix_hashes: Iterable[bytes],
        *,
        adapter_id: str = "",
        timestamp_ns: int = 0,
    ) -> None:
        """Tell that *replica* dropped some blocks; arguments as for :meth:`Reporter.evict`.

        Raises:
            DeliveryError: The server is gone or did not acknowledge in time.
        """
        async with self._lock:
            await self._line.confirm()
            await self._line.publish(
                Removal(replica, prefix_hash, adapter_id, timestamp_ns)
                for prefix_hash in prefix_hashes
            )

    async def clear(self, replica: ReplicaRef, *, timestamp_ns: int = 0) -> None:
        """Tell that *replica* dropped everything; on return the server knows.

        Raises:
            DeliveryError: The server is gone or did not acknowledge in time.
        """
        async with self._lock:
            await self._line.confirm()
            await self._line.publish([Removal(replica, None, "", timestamp_ns)])

    async def flush(self) -> None:
        """Return once the server has confirmed every report so far.

        Raises:
            DeliveryError: It did not; reports since the last confirmation may be lost.
        """
        async with self._lock:
            await self._line.confirm()

    def close(self) -> None:
        """Drop what is unconfirmed; await :meth:`flush` first to keep it."""
        self._line.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.flush()
        self.close()
