"""The server's periodic work, in slices that give the event loop back in between."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.service import CachePlane
from inferencecache.settings.server import ServerSettings
from inferencecache.transport.drive import drive_slices
from inferencecache.transport.prometheus import ServerMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What the periodic work is about.

    Attributes:
        settings: How often.
        plane: Swept and reclaimed.
        metrics: Told about sweeps and the loop's lag.
        clock: Measures both.
    """

    settings: ServerSettings
    plane: CachePlane
    metrics: ServerMetrics
    clock: Clock

    def tasks(self) -> dict[str, Coroutine[None, None, None]]:
        """Return the endless work by name; each ends only by being cancelled, or by a bug."""
        index = self.settings.index
        chosen = {
            "sweep": (index.sweep_interval_ns, self.sweep),
            "reclaim": (self.settings.process.reclaim_interval_ns, self.reclaim),
            "lfu-halving": (index.lfu_halving_interval_ns, self.halve_credits),
        }
        tasks = {
            name: _repeat(interval_ns, work)
            for name, (interval_ns, work) in chosen.items()
            if interval_ns > 0
        }
        lag_interval_ns = self.settings.metrics.loop_lag_interval_ns
        if lag_interval_ns > 0:
            tasks["loop-lag"] = self.watch_loop(lag_interval_ns)
        return tasks

    async def sweep(self) -> None:
        """Remove what has expired."""
        started_ns = self.clock.monotonic_ns()
        await drive_slices(self.plane.sweep_slices(), self.clock)
        self.metrics.sweep_finished(self.clock.monotonic_ns() - started_ns)

    async def reclaim(self) -> None:
        """Free what a big ALL_CLEARED has left behind, if anything."""
        if self.plane.index.has_pending_reclaim:
            await drive_slices(self.plane.index.reclaim_slices(), self.clock)

    async def halve_credits(self) -> None:
        """Let old LFU use count for less."""
        await drive_slices(self.plane.index.halve_credits_slices(), self.clock)

    async def watch_loop(self, interval_ns: int) -> None:
        """Measure again and again how late the loop wakes a timer of *interval_ns*."""
        while True:
            asked_ns = self.clock.monotonic_ns() + interval_ns
            await asyncio.sleep(interval_ns / NS_PER_S)
            self.metrics.loop_lagged(max(self.clock.monotonic_ns() - asked_ns, 0))


async def _repeat(interval_ns: int, work: Callable[[], Coroutine[None, None, None]]) -> None:
    while True:
        await asyncio.sleep(interval_ns / NS_PER_S)
        await work()
