"""The whole of the cache plane on one machine, for a while: a fleet, a gateway, and their end."""

import asyncio
import signal
from collections.abc import Hashable
from typing import Final, Protocol

import uvloop

from inferencecache.app.demo_fleet import running_fleet
from inferencecache.app.demo_gateway import Gateway
from inferencecache.app.demo_standing import DemoStanding, DemoWatcher
from inferencecache.settings.demo import DemoSettings
from inferencecache.simulation import TrafficRules, traffic
from inferencecache.transport.system_clock import SystemClock

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_STALL_S: Final = 10.0


class Settling(Protocol):
    """Something that comes to rest."""

    async def settled(self) -> None:
        """Wait until it has."""
        ...

    def progress(self) -> Hashable:
        """Return something that differs as long as it gets on."""
        ...


def run_demo(settings: DemoSettings, watcher: DemoWatcher) -> DemoStanding:
    """Run a demo until its time is up or a signal comes.

    Returns:
        How it ended.
    """
    return uvloop.run(demo(settings, watcher))


async def demo(settings: DemoSettings, watcher: DemoWatcher) -> DemoStanding:
    """Do what :func:`run_demo` does, on the running loop."""
    asked_to_stop = asyncio.Event()
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, asked_to_stop.set)
    async with running_fleet(settings) as fleet:
        watcher.started(fleet)
        gateway = Gateway(fleet, settings, SystemClock())
        try:
            await _send_all(gateway, settings, watcher, asked_to_stop)
            is_comparable = await has_settled(fleet)
            return gateway.standing(fleet.differences() if is_comparable else None)
        finally:
            await gateway.close()


async def _send_all(
    gateway: Gateway, settings: DemoSettings, watcher: DemoWatcher, asked_to_stop: asyncio.Event
) -> None:
    """Send prompts at the wanted pace until the time is up."""
    rules = TrafficRules(
        seed=settings.seed, families=settings.families, shared_blocks=settings.shared_blocks
    )
    shown_every = max(1, settings.requests_per_s // 4)
    is_restart_due = settings.restarts_engine and settings.seconds > 0
    for sent, step in enumerate(traffic(rules)):
        await gateway.send(step)
        if sent % shown_every == 0:
            watcher.played(gateway.standing())
        if settings.seconds and gateway.elapsed_s >= settings.seconds:
            return
        if is_restart_due and gateway.elapsed_s >= settings.seconds / 2:
            is_restart_due = False
            await gateway.restart_one()
        due_s = (sent + 1) / settings.requests_per_s - gateway.elapsed_s
        try:
            async with asyncio.timeout(max(0.0, due_s)):
                await asked_to_stop.wait()
        except TimeoutError:
            continue
        return


async def has_settled(fleet: Settling, stall_s: float = _STALL_S) -> bool:
    """Let everything arrive, however slow the machine is; False once nothing moves any more.

    Args:
        fleet: What has to come to rest.
        stall_s: Seconds without any progress after which it is given up.
    """
    seen = fleet.progress()
    while True:
        try:
            async with asyncio.timeout(stall_s):
                await fleet.settled()
        except TimeoutError:
            before, seen = seen, fleet.progress()
            if seen == before:
                return False
        else:
            return True
