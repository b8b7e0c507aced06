"""Whether an index in another server has ever been told anything of a model.

LookupRoute has one answer for "nobody holds this prompt" and for "nobody has ever reported": an
index with nothing in it looks like a healthy one. So where it answers with nothing, it is asked
once in a while whether it has anything at all, and Picks in between go by what it said.
"""

import asyncio
from collections import OrderedDict
from typing import NamedTuple, Protocol

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.settings.picker_prefix import PickerIndexSettings

_Domain = tuple[str, str]
"""Tenant and model."""


class EmptinessSource(Protocol):
    """Says whether no replica has said anything of a tenant's model."""

    async def is_empty(self, tenant_id: str, model_id: str, timeout_s: float) -> bool | None:
        """Return it; None if nobody says. Never raises for what the other side does."""
        ...


class _Said(NamedTuple):
    is_empty: bool
    until_ns: int


class IndexCold:
    """Remembers of which tenants' models another index knows nothing.

    Args:
        settings: How long an answer holds, and how many are kept.
        clock: Monotonic time.
        source: Is asked.
    """

    def __init__(
        self, settings: PickerIndexSettings, clock: Clock, source: EmptinessSource
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._source = source
        self._said: OrderedDict[_Domain, _Said] = OrderedDict()
        self._asking: dict[_Domain, asyncio.Task[bool]] = {}

    async def is_cold(self, tenant_id: str, model_id: str, deadline_ns: int) -> bool:
        """Return whether the index has nothing of a tenant's model; False where it cannot say.

        Args:
            tenant_id: The tenant.
            model_id: The model.
            deadline_ns: Monotonic time from which on no answer is wanted.
        """
        domain, now_ns = (tenant_id, model_id), self._clock.monotonic_ns()
        said = self._said.get(domain)
        if said is not None and now_ns < said.until_ns:
            return said.is_empty
        task = self._asking.get(domain)
        if task is None:
            if len(self._asking) >= self._settings.cold_domains_max:
                return False
            task = self._asking[domain] = asyncio.create_task(self._ask(domain, deadline_ns))
        return await asyncio.shield(task)

    async def settle(self) -> None:
        """Wait for what is being asked; where the source has ended, nothing takes long."""
        await asyncio.gather(*self._asking.values())

    async def _ask(self, domain: _Domain, deadline_ns: int) -> bool:
        try:
            left_ns = max(deadline_ns - self._clock.monotonic_ns(), 0)
            is_empty = bool(await self._source.is_empty(*domain, left_ns / NS_PER_S))
        finally:
            del self._asking[domain]
        until_ns = self._clock.monotonic_ns() + self._settings.cold_recheck_ns
        self._said[domain] = _Said(is_empty, until_ns)
        self._said.move_to_end(domain)
        if len(self._said) > self._settings.cold_domains_max:
            self._said.popitem(last=False)
        return is_empty
