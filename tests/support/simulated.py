"""Simulations as tests want them: a workload by name, a few strategies, nobody looking on."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random

from mooncake_traces import mooncake_trace

from inferencecache.app.replay_plane import HASH_SCHEME
from inferencecache.app.simulate import Stage, picker_strategy, rules_of, run_simulation
from inferencecache.app.simulate_fleet import MODEL, TENANT, engine_name
from inferencecache.app.simulate_input import SimulateInput, simulate_input
from inferencecache.app.simulate_picker import PickerStrategy
from inferencecache.clock import ManualClock
from inferencecache.picker.fleet import RankBy
from inferencecache.settings.simulate import SimulateCommandSettings, SimulateSettings
from inferencecache.simulation import (
    TRACE_BLOCK_TOKENS,
    FleetRequest,
    FleetRun,
    ServedRequest,
    SimulationSummary,
    trace_workload,
)
from inferencecache.types import PartitionKey

GENERATED = ("sessions", "cold")
_KEY = PartitionKey(TENANT, MODEL, HASH_SCHEME, "")


class NobodyLooks:
    """Takes no notice of progress."""

    def offered(self, strategy: str) -> None:
        """Take no notice."""


@cache
def workload(name: str, settings: SimulateSettings) -> SimulateInput:
    """Return the traffic called *name*: generated, or a whole Mooncake trace or its beginning."""
    if name in GENERATED:
        named = replace(settings, traffic=name)
        return simulate_input(None, SimulateCommandSettings(simulate=named))
    requests = mooncake_trace(name)[: settings.requests or None]
    draw = Random(settings.seed)
    return SimulateInput(name=name, requests=trace_workload(requests, settings.speed, draw))


def simulated(name: str, settings: SimulateSettings) -> SimulationSummary:
    """Return what the strategies of *settings* make of the traffic called *name*."""
    return played(workload(name, settings).requests, settings)


def played(requests: Sequence[FleetRequest], settings: SimulateSettings) -> SimulationSummary:
    """Return what the strategies of *settings* make of *requests*."""
    command = SimulateCommandSettings(simulate=settings)
    traffic = SimulateInput(name="traffic of a test", requests=requests)
    return run_simulation(traffic, command, NobodyLooks())


class PickedRun:
    """The real picker and its engines, request by request.

    Args:
        name: Of the traffic.
        rank_by: How the picker ranks.
        settings: The fleet.

    Attributes:
        requests: What is played.
        strategy: The picker.
        run: The engines.
    """

    def __init__(self, name: str, rank_by: RankBy, settings: SimulateSettings) -> None:
        played = workload(name, settings)
        clock = ManualClock()
        stage = Stage(settings=settings, workload=played, clock=clock)
        self.requests = played.requests
        self.strategy: PickerStrategy = picker_strategy(rank_by, stage)
        self.run = FleetRun(rules_of(settings), self.strategy, clock)

    def offer(self, request: FleetRequest) -> tuple[ServedRequest, int]:
        """Place *request*; return it, and how much the index then says that its engine holds."""
        served = self.run.offer(request)
        hashes = request.block_hashes
        found = self.strategy.index.plane.index.match_chain(
            _KEY, hashes, [TRACE_BLOCK_TOKENS] * len(hashes), request.arrival_ns
        )
        tokens = {replica_id: tokens for replica_id, tokens, *_ in found}
        return served, tokens.get(engine_name(served.engine), 0)
