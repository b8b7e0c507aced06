"""Play a workload against several strategies, each with engines of its own, in virtual time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from inferencecache.app.simulate_input import COLD, SESSIONS, SimulateInput
from inferencecache.app.simulate_picker import PickerStrategy, PickerStrategyParts
from inferencecache.clock import NS_PER_S, Clock, ManualClock
from inferencecache.errors import ConfigError
from inferencecache.picker.fleet import RankBy
from inferencecache.settings.knob import knobs_of
from inferencecache.settings.simulate import SimulateCommandSettings, SimulateSettings
from inferencecache.settings.value import write
from inferencecache.simulation import (
    ComputeRules,
    FleetRules,
    FleetRun,
    LeastLoad,
    PrefixSticky,
    RoundRobin,
    SimulationSummary,
    Strategy,
    StrategyOutcome,
    outcome_of,
)
from inferencecache.transport.system_clock import SystemClock

ROUND_ROBIN: Final = "round-robin"
LEAST_LOAD: Final = "least-load"
PREFIX_STICKY: Final = "prefix-sticky"
PROFILE: Final = "weighted-profile"
ESTIMATED: Final = "estimated-ttft"
PREDICTED: Final = "predicted-ttft"

_ALL: Final = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a strategy is made for.

    Attributes:
        settings: The fleet.
        workload: What will be played.
        clock: Virtual time.
    """

    settings: SimulateSettings
    workload: SimulateInput
    clock: ManualClock


def picker_strategy(rank_by: RankBy, stage: Stage) -> PickerStrategy:
    """Return the real picker, ranking as told."""
    return PickerStrategy(
        PickerStrategyParts(
            rank_by=rank_by,
            settings=stage.settings,
            requests=stage.workload.requests,
            clock=stage.clock,
        )
    )


def _round_robin(stage: Stage) -> Strategy:
    return RoundRobin(stage.settings.engines, stage.settings.seed)


def _least_load(stage: Stage) -> Strategy:
    return LeastLoad(stage.settings.engines, stage.settings.seed)


def _prefix_sticky(stage: Stage) -> Strategy:
    settings = stage.settings
    return PrefixSticky(settings.engines, settings.seed, settings.sticky_share_min)


STRATEGIES: Final[Mapping[str, Callable[[Stage], Strategy]]] = {
    ROUND_ROBIN: _round_robin,
    LEAST_LOAD: _least_load,
    PREFIX_STICKY: _prefix_sticky,
    PROFILE: partial(picker_strategy, RankBy.PROFILE),
    ESTIMATED: partial(picker_strategy, RankBy.ESTIMATED_TTFT),
    PREDICTED: partial(picker_strategy, RankBy.PREDICTED_TTFT),
}
"""How each strategy is made, in the order of the table."""


class Watcher(Protocol):
    """Somebody who looks on, for example a progress bar."""

    def offered(self, strategy: str) -> None:
        """Note that one more request was placed by *strategy*."""
        ...


def run_simulation(
    workload: SimulateInput,
    settings: SimulateCommandSettings,
    watcher: Watcher,
    clock: Clock | None = None,
) -> SimulationSummary:
    """Play *workload* once per strategy and return what came of it.

    Args:
        workload: What is played.
        settings: The fleet, and which strategies.
        watcher: Is told about progress.
        clock: Measures how long it takes; None takes the system's.

    Raises:
        ConfigError: There is no such strategy.
    """
    names = chosen_strategies(settings.simulate.strategies)
    watch = clock or SystemClock()
    return SimulationSummary(
        workload=workload.name,
        parameters=parameters_of(workload, settings),
        strategies=[_played(name, workload, settings, watcher, watch) for name in names],
    )


def chosen_strategies(text: str) -> list[str]:
    """Return the names in *text*, in the order of the table.

    Raises:
        ConfigError: One of them is none.
    """
    named = {name.strip() for name in text.split(",")}
    if named == {_ALL}:
        return list(STRATEGIES)
    if not named <= STRATEGIES.keys():
        allowed = f"{_ALL}, or some of {', '.join(STRATEGIES)}"
        raise ConfigError(field="--strategies", value=text, allowed=allowed)
    return [name for name in STRATEGIES if name in named]


def rules_of(settings: SimulateSettings) -> FleetRules:
    """Return the engines that *settings* describe."""
    return FleetRules(
        engines=settings.engines,
        cache_blocks=settings.cache_blocks,
        compute=ComputeRules(
            prefill_tokens_per_s=settings.prefill_tokens_per_s,
            base_ns=settings.base_ttft_ns,
            decode_token_ns=settings.decode_token_ns,
            concurrency_max=settings.concurrency_max,
        ),
    )


def parameters_of(workload: SimulateInput, settings: SimulateCommandSettings) -> dict[str, str]:
    """Return everything that the numbers depend on, as it is written on a command line."""
    groups: list[object] = [settings.simulate]
    groups += [settings.sessions] if settings.simulate.traffic == SESSIONS else []
    groups += [settings.cold] if settings.simulate.traffic == COLD else []
    written = {
        knob.flag: write(knob, getattr(group, knob.name))
        for group in groups
        for knob in knobs_of(type(group))
    }
    return {"requests": str(len(workload.requests)), **written}


def _played(
    name: str,
    workload: SimulateInput,
    settings: SimulateCommandSettings,
    watcher: Watcher,
    watch: Clock,
) -> StrategyOutcome:
    clock = ManualClock()
    started_ns = watch.monotonic_ns()
    strategy = STRATEGIES[name](Stage(settings=settings.simulate, workload=workload, clock=clock))
    run = FleetRun(rules_of(settings.simulate), strategy, clock)
    for request in workload.requests:
        run.offer(request)
        watcher.offered(name)
    run.end()
    return outcome_of(name, run, (watch.monotonic_ns() - started_ns) / NS_PER_S)
