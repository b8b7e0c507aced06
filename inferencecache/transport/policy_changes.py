"""Change policies without holding up lookups: the slow part in a thread, the change on the loop.

A push of a megabyte takes hundreds of milliseconds to read and resolve.

Rules of this file: one change at a time, in the order in which they came, whatever their source;
what is put in force is complete; nothing but the event loop touches what lookups read.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import TypeVar

from inferencecache.policy import (
    PolicyLayer,
    PolicyLayers,
    PolicyPushError,
    PolicySnapshot,
    PreparedLayer,
    Replacement,
    decode_policy_push,
)
from inferencecache.settings.policy import PolicySettings
from inferencecache.transport.giving_way import giving_way
from inferencecache.transport.structured_log import EventLog

ResultT = TypeVar("ResultT")


class PushResult(StrEnum):
    """What became of a push; a metric label."""

    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    REJECTED = "rejected"


class PolicyChanges:
    """The one way in which a running server's policies change.

    Args:
        layers: What is changed.
        settings: Limits of a push.
        log: Told about pushes that differ from the last.

    Attributes:
        pushes: How many there were, by what became of them.
    """

    def __init__(self, layers: PolicyLayers, settings: PolicySettings, log: EventLog) -> None:
        self._layers = layers
        self._settings = settings
        self._log = log
        self._turn = asyncio.Lock()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="policies")
        self._accepted: bytes | None = None
        self.pushes: Counter[PushResult] = Counter(dict.fromkeys(PushResult, 0))

    async def push(self, body: bytes) -> None:
        """Put in force what *body* says; the same body as the last accepted one changes nothing.

        Raises:
            PolicyPushError: The body is outside the contract; nothing has changed.
        """
        async with self._turn:
            if body == self._accepted:
                self.pushes[PushResult.UNCHANGED] += 1
                return
            try:
                snapshot = await self._apart(lambda: decode_policy_push(body, self._settings))
            except PolicyPushError:
                self.pushes[PushResult.REJECTED] += 1
                raise
            replacement = await self._replace(PolicyLayer.PUSH, snapshot)
            self._accepted = body
            self.pushes[PushResult.REPLACED] += 1
        self._tell(replacement)

    async def replace(self, layer: PolicyLayer, snapshot: PolicySnapshot) -> Replacement:
        """Replace a whole layer.

        Args:
            layer: Whose word it is.
            snapshot: All that it says now.

        Returns:
            How much it says now, and how much of what it said before it does not say any more.
        """
        async with self._turn:
            return await self._replace(layer, snapshot)

    def close(self) -> None:
        """Begin nothing more."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def _replace(self, layer: PolicyLayer, snapshot: PolicySnapshot) -> Replacement:
        while True:
            prepared: PreparedLayer = await self._apart(
                lambda: self._layers.prepare(layer, snapshot)
            )
            if self._layers.is_current(prepared):
                return self._layers.install(prepared)

    async def _apart(self, work: Callable[[], ResultT]) -> ResultT:
        """Do *work* in the worker; it has no effects, so whoever goes away may abandon it."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, giving_way, work)

    def _tell(self, replacement: Replacement) -> None:
        """Log what is stored now, which may be less than was sent."""
        is_empty = not replacement.policies and not replacement.quotas
        if is_empty and (replacement.policies_removed or replacement.quotas_removed):
            self._log.warning("policy_push_empty", **replacement._asdict())
        else:
            self._log.info("policy_push_applied", **replacement._asdict())
