"""What a simulation plays: a trace from a file, or traffic that is generated."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from inferencecache.app.replay_input import read_trace
from inferencecache.errors import ConfigError
from inferencecache.settings.simulate import SimulateCommandSettings
from inferencecache.simulation import (
    FleetRequest,
    cold_workload,
    session_workload,
    trace_workload,
)

TRACE: Final = "trace"
SESSIONS: Final = "sessions"
COLD: Final = "cold"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateInput:
    """What is played.

    Attributes:
        name: What people call it.
        requests: In order of arrival, at least one.
    """

    name: str
    requests: Sequence[FleetRequest]


def simulate_input(path: Path | None, settings: SimulateCommandSettings) -> SimulateInput:
    """Read or generate what is played, before anything is simulated.

    Args:
        path: A trace; None for the shipped one, and for generated traffic.
        settings: What is wanted.

    Raises:
        ConfigError: The trace is wrong, or is not wanted.
    """
    simulate = settings.simulate
    draw = Random(simulate.seed)  # noqa: S311 - a simulation is to be repeated
    if simulate.traffic == TRACE:
        trace = read_trace(path, simulate.requests)
        requests = trace_workload(trace.requests, simulate.speed, draw)
        return SimulateInput(name=trace.name, requests=requests)
    if path is not None:
        raise ConfigError(
            field="TRACE", value=str(path), allowed=f"none with --traffic {simulate.traffic}"
        )
    count = simulate.requests or simulate.generated_requests
    if simulate.traffic == SESSIONS:
        requests = session_workload(count, simulate.speed, settings.sessions, draw)
        return SimulateInput(name="agent sessions", requests=requests)
    requests = cold_workload(count, simulate.speed, settings.cold, draw)
    return SimulateInput(name="cold prompts", requests=requests)
