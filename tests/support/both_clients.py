"""Drive the blocking and the awaited client through the same calls."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Protocol

from inferencecache.client import (
    AsyncCacheClient,
    CacheClient,
    CacheUpdate,
    LookupQuery,
    LookupResult,
    ReplicaHint,
    ReplicaRef,
)


class DrivenReporter(Protocol):
    """A reporter whose every call can be awaited."""

    unconfirmed: int

    async def report(self, update: CacheUpdate) -> None:
        """Report."""

    async def evict(self, replica: ReplicaRef, prefix_hashes: Iterable[bytes]) -> None:
        """Evict."""

    async def clear(self, replica: ReplicaRef) -> None:
        """Clear."""

    async def flush(self) -> None:
        """Flush."""

    async def close(self) -> None:
        """Close."""


class Driven(Protocol):
    """A client whose every call can be awaited."""

    async def lookup(self, query: LookupQuery, **options: object) -> LookupResult:
        """Look up."""

    async def choose(self, query: LookupQuery, **options: object) -> ReplicaHint | None:
        """Choose."""

    def reporter(self) -> DrivenReporter:
        """Return a reporter."""

    async def close(self) -> None:
        """Close."""


Open = Callable[..., Driven]
"""Opens a client at a target, with the client's own options."""


class _Threaded:
    """Run the methods of a blocking object on threads."""

    def __init__(self, wrapped: object) -> None:
        self.wrapped = wrapped

    def __getattr__(self, name: str) -> object:
        method = getattr(self.wrapped, name)
        if not callable(method):
            return method

        async def call(*args: object, **options: object) -> object:
            return await asyncio.to_thread(method, *args, **options)

        return call


class BlockingDriven(_Threaded):
    """The blocking client, off the loop."""

    def __init__(self, target: str, **options: object) -> None:
        super().__init__(CacheClient(target, **options))

    def reporter(self) -> DrivenReporter:
        """Return the blocking reporter, off the loop."""
        return _Threaded(self.wrapped.reporter())


class AwaitedDriven:
    """The awaited client as it is."""

    def __init__(self, target: str, **options: object) -> None:
        self.wrapped = AsyncCacheClient(target, **options)

    def __getattr__(self, name: str) -> object:
        return getattr(self.wrapped, name)

    def reporter(self) -> DrivenReporter:
        """Return the reporter, with a close that can be awaited as the other's."""
        return _AwaitedReporter(self.wrapped.reporter())


class _AwaitedReporter:
    def __init__(self, wrapped: object) -> None:
        self.wrapped = wrapped

    def __getattr__(self, name: str) -> object:
        return getattr(self.wrapped, name)

    async def close(self) -> None:
        self.wrapped.close()


DRIVERS: dict[str, Open] = {"blocking": BlockingDriven, "awaited": AwaitedDriven}


@asynccontextmanager
async def opening(kind: str) -> AsyncIterator[Open]:
    """Give what opens clients of a kind; at the end all are closed."""
    opened: list[Driven] = []

    def open_client(target: str, **options: object) -> Driven:
        client = DRIVERS[kind](target, **options)
        opened.append(client)
        return client

    yield open_client
    for client in opened:
        await client.close()
