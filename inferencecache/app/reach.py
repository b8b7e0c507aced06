"""Find out whether a cache server answers at an address, before anything depends on it.

A command that was given a wrong address, or a server that is still starting, is another thing than
a server that was there and is gone: the first is for whoever typed the address.
"""

import asyncio
from typing import Final

from inferencecache.client import AsyncCacheClient, FailOpenCause
from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.errors import InferenceCacheError
from inferencecache.transport.unreachable import REACH_QUERY, why_unreachable

NO_ANSWER: Final = frozenset(
    {
        FailOpenCause.CLOSED,
        FailOpenCause.DEADLINE,
        FailOpenCause.INVALID_ANSWER,
        FailOpenCause.INVALID_QUERY,
        FailOpenCause.REFUSED,
        FailOpenCause.RPC_ERROR,
        FailOpenCause.TOO_LARGE,
        FailOpenCause.UNREACHABLE,
        FailOpenCause.UNSUPPORTED,
    }
)
"""The causes that mean the server itself said nothing usable."""

_PAUSE_S: Final = 0.2


class ServerAbsentError(InferenceCacheError):
    """No cache server has ever answered at an address.

    Args:
        target: The address.
        tried_s: How long it was tried, in seconds.
        why: What kept it from answering.
    """

    def __init__(self, *, target: str, tried_s: float, why: str) -> None:
        super().__init__(f"no cache server answers at {target}: tried for {tried_s:.1f} s, {why}")
        self.target = target
        self.tried_s = tried_s
        self.why = why


async def reach(client: AsyncCacheClient, target: str, within_ns: int) -> None:
    """Return as soon as a cache server has answered.

    Args:
        client: What to ask with.
        target: The client's target, for the error.
        within_ns: How long to try; a server that is just starting is waited for.

    Raises:
        ServerAbsentError: There was no answer in this time.
    """
    loop = asyncio.get_running_loop()
    started_s = loop.time()
    end_s = started_s + within_ns / NS_PER_S
    refusal = ""
    while True:
        left_ms = max((end_s - loop.time()) * NS_PER_S / NS_PER_MS, 1.0)
        result = await client.lookup(REACH_QUERY, deadline_ms=left_ms)
        if result.cause not in NO_ANSWER:
            return
        now_s = loop.time()
        if result.cause is FailOpenCause.UNREACHABLE:
            refusal = result.detail
            if now_s + _PAUSE_S < end_s:
                await asyncio.sleep(_PAUSE_S)
                continue
        # The last attempt may have had too little time to be refused once more.
        detail = refusal if result.cause is FailOpenCause.DEADLINE and refusal else result.detail
        why = why_unreachable(detail)
        raise ServerAbsentError(target=target, tried_s=now_s - started_s, why=why)
