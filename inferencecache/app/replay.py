"""Play a trace against a server: look up, route, serve, report, one request after the other.

Rules of this file
    1. A request's reports are applied before the next lookup, so answers depend on the trace and
       the seed alone, never on timing.
    2. Nothing here decides: routes, hits and evictions come from ``simulation``, answers from the
       server.
"""

import asyncio
import dataclasses
from typing import Protocol

import uvloop

from inferencecache.app.replay_input import ReplayInput
from inferencecache.app.replay_plane import ReplayPlane, ServerLostError
from inferencecache.app.replay_server import server_for
from inferencecache.app.replay_zmq import check_zmq, zmq_plane
from inferencecache.clock import NS_PER_S, Clock
from inferencecache.errors import ConfigError
from inferencecache.settings.replay import ReplaySettings
from inferencecache.settings.target import check_target
from inferencecache.simulation import (
    Answer,
    Experiment,
    Prompt,
    ReplaySummary,
    Served,
    due_in_ns,
)
from inferencecache.transport.system_clock import SystemClock
from inferencecache.types import PROBE_TENANT_ID


class Plane(Protocol):
    """The fleet's side of the wire."""

    replica_ids: list[str]

    async def start(self) -> None:
        """Tell the server that every replica is empty."""
        ...

    async def look_up(self, prompt: Prompt) -> Answer:
        """Ask where *prompt* is warm."""
        ...

    async def report(self, served: Served) -> None:
        """Report what serving a prompt changed; on return the server has applied it."""
        ...


class Watcher(Protocol):
    """Somebody who looks on, for example a progress bar."""

    def started(self, target: str, *, is_own_server: bool) -> None:
        """Note which server the replay talks to."""
        ...

    def played(self, experiment: Experiment, requests: int) -> None:
        """Note that *requests* prompts were played so far."""
        ...


def run_replay(trace: ReplayInput, settings: ReplaySettings, watcher: Watcher) -> ReplaySummary:
    """Play *trace* and return what came of it.

    Args:
        trace: The prompts.
        settings: Fleet, gateway and server.
        watcher: Is told about start and progress.

    Raises:
        ConfigError: A setting makes no sense for a replay.
        ServerAbsentError: The server that was named has never answered.
        ServerLostError: The server does not answer any more.
    """
    return uvloop.run(replay(trace, settings, watcher, SystemClock()))


async def replay(
    trace: ReplayInput, settings: ReplaySettings, watcher: Watcher, clock: Clock
) -> ReplaySummary:
    """Do what :func:`run_replay` does, on the running loop."""
    _check(settings)
    async with server_for(settings) as target:
        watcher.started(target, is_own_server=not settings.server)
        gateway = ReplayPlane(target, settings, clock)
        stage = _Stage(watcher=watcher, clock=clock)
        try:
            await gateway.reach()
            if not settings.through_zmq:
                return await _play(trace, settings, gateway, stage)
            async with zmq_plane(gateway, trace, settings, clock) as plane:
                return await _play(trace, settings, plane, stage)
        finally:
            await gateway.close()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """What a replay has around it."""

    watcher: Watcher
    clock: Clock


async def _play(
    trace: ReplayInput, settings: ReplaySettings, plane: Plane, stage: _Stage
) -> ReplaySummary:
    """Play every prompt in order."""
    experiment = Experiment(settings, len(trace.prompts))
    done = 0
    try:
        await plane.start()
        started_ns = stage.clock.monotonic_ns()
        for prompt in trace.prompts:
            elapsed_ns = stage.clock.monotonic_ns() - started_ns
            wait_ns = due_in_ns(prompt.arrival_ms, settings.speed, elapsed_ns)
            if wait_ns:
                await asyncio.sleep(wait_ns / NS_PER_S)
            await plane.report(experiment.play(prompt, await plane.look_up(prompt)))
            done += 1
            stage.watcher.played(experiment, done)
    except ServerLostError as error:
        raise ServerLostError(f"{error}; {done} of {len(trace.prompts)} requests done") from error
    duration_ns = stage.clock.monotonic_ns() - started_ns
    return experiment.summary(trace.name, plane.replica_ids, duration_ns)


def _check(settings: ReplaySettings) -> None:
    """Refuse what cannot be a server, and names under which one answers nothing."""
    if settings.server:
        check_target("--server", settings.server)
    if settings.through_zmq:
        check_zmq(settings)
    for field, value in (("--tenant", settings.tenant_id), ("--model", settings.model_id)):
        if not value or value == PROBE_TENANT_ID:
            raise ConfigError(
                field=field, value=value, allowed=f"a name other than {PROBE_TENANT_ID!r}"
            )
