"""The whole of the cache plane on one machine, for a while: a fleet, its traffic, and its end."""

import asyncio
import signal
from collections.abc import Hashable
from contextlib import suppress
from typing import Final, Protocol

import uvloop

from inferencecache.app.demo_fleet import running_fleet
from inferencecache.app.demo_news import DemoNews
from inferencecache.app.demo_standing import DemoStanding, DemoWatcher
from inferencecache.app.demo_traffic import DemoTraffic
from inferencecache.settings.demo import DemoSettings
from inferencecache.simulation import TrafficRules, traffic
from inferencecache.transport.system_clock import SystemClock

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_STALL_S: Final = 10.0
_SHOWN_EVERY_S: Final = 0.25


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
        clock = SystemClock()
        made_up = DemoTraffic(fleet, settings, clock)
        showing = asyncio.create_task(_show(made_up, DemoNews(fleet, clock), watcher))
        try:
            await _send_all(made_up, settings, asked_to_stop)
            await fleet.engine_control.all_back()
            is_comparable = await has_settled(fleet)
            return made_up.standing(fleet.differences() if is_comparable else None)
        finally:
            showing.cancel()
            with suppress(asyncio.CancelledError):  # anything else that ended it comes out
                await showing
            await made_up.close()


async def _show(made_up: DemoTraffic, news: DemoNews, watcher: DemoWatcher) -> None:
    """Show for ever how it stands, and what has happened."""
    while True:
        for line in news.lines():
            watcher.told(line)
        watcher.played(made_up.standing())
        await asyncio.sleep(_SHOWN_EVERY_S)


async def _send_all(
    made_up: DemoTraffic, settings: DemoSettings, asked_to_stop: asyncio.Event
) -> None:
    """Send prompts at the wanted pace until the time is up."""
    limit_s = settings.seconds or None
    try:
        async with asyncio.timeout(limit_s):
            if settings.requests_per_s:
                await _send_some(made_up, settings, asked_to_stop)
            await asked_to_stop.wait()
    except TimeoutError:
        return


async def _send_some(
    made_up: DemoTraffic, settings: DemoSettings, asked_to_stop: asyncio.Event
) -> None:
    """Send prompts at the wanted pace until it is asked to stop."""
    rules = TrafficRules(
        seed=settings.seed, families=settings.families, shared_blocks=settings.shared_blocks
    )
    is_restart_due = settings.restarts_engine and settings.seconds > 0
    for sent, step in enumerate(traffic(rules)):
        await made_up.send(step)
        if is_restart_due and made_up.elapsed_s >= settings.seconds / 2:
            is_restart_due = False
            await made_up.restart_one()
        due_s = (sent + 1) / settings.requests_per_s - made_up.elapsed_s
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
