"""Drive the blocking and the awaited client through the same calls."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from inferencecache.client import AsyncCacheClient, CacheClient, LookupQuery, LookupResult


class Driven(Protocol):
    """A client whose every call can be awaited."""

    async def lookup(self, query: LookupQuery, **options: Any) -> LookupResult:
        """Look up."""
        ...

    async def choose(self, query: LookupQuery, **options: Any) -> Any:
        """Choose."""
        ...

    def reporter(self) -> Any:
        """Return a reporter whose every call can be awaited."""
        ...

    async def close(self) -> None:
        """Close."""
        ...


class _Threaded:
    """Run the methods of a blocking object on threads."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.wrapped, name)
        if not callable(method):
            return method

        async def call(*args: Any, **options: Any) -> Any:
            return await asyncio.to_thread(method, *args, **options)

        return call


class BlockingDriven(_Threaded):
    """The blocking client, off the loop."""

    def __init__(self, target: str, **options: Any) -> None:
        super().__init__(CacheClient(target, **options))

    def reporter(self) -> Any:
        """Return the blocking reporter, off the loop."""
        return _Threaded(self.wrapped.reporter())


class AwaitedDriven:
    """The awaited client as it is."""

    def __init__(self, target: str, **options: Any) -> None:
        self.wrapped = AsyncCacheClient(target, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)

    def reporter(self) -> Any:
        """Return the reporter, with a close that can be awaited as the other's."""
        return _AwaitedReporter(self.wrapped.reporter())


class _AwaitedReporter:
    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)

    async def close(self) -> None:
        self.wrapped.close()


DRIVERS: dict[str, Callable[..., Any]] = {"blocking": BlockingDriven, "awaited": AwaitedDriven}
