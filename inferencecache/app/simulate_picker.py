"""The real picker as a strategy of a simulated fleet, in virtual time.

Everything is what a server has: rules, candidates, the prefix signal over an index, the order,
suppression, and learning from reports. What is simulated is around it: the engines, the caller that
reports, and the time.

Rules of this file: nothing may wait. A Pick that would have to is an error, because then the table
would depend on the machine.
"""

import logging
from collections import deque
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from random import Random
from typing import TypeVar

from inferencecache.app.picker_fleet import PickerFleet, PickerFleetParts
from inferencecache.app.picker_plugins import no_plugins
from inferencecache.app.simulate_fleet import MODEL, engine_address, simulated_fleet
from inferencecache.app.simulate_index import SimulatedIndex
from inferencecache.app.simulate_profile import profile_director
from inferencecache.app.simulate_prompts import question_of
from inferencecache.app.simulate_signal import simulated_knowledge
from inferencecache.clock import NS_PER_MS, NS_PER_S, ManualClock
from inferencecache.picker.choice import Choice, Refusal
from inferencecache.picker.choosing import fleet_index
from inferencecache.picker.decisions import (
    Ending,
    FinalTokenReport,
    FirstTokenReport,
)
from inferencecache.picker.fleet import RankBy
from inferencecache.picker.prefix.knowledge import PrefixKnowledge
from inferencecache.settings.picker import PickerSettings
from inferencecache.settings.picker_choice import PickerChoiceSettings
from inferencecache.settings.simulate import SimulateSettings
from inferencecache.simulation import CacheOutcome, FleetRequest
from inferencecache.transport.structured_log import LOGGER_NAME, EventLog, StructuredLog

ResultT = TypeVar("ResultT")


class PickError(Exception):
    """The picker did what it must not do in a simulation.

    Args:
        number: Of the request.
        what: What it did.
    """

    def __init__(self, number: int, what: str) -> None:
        super().__init__(f"request {number}: {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerStrategyParts:
    """What the strategy is made of.

    Attributes:
        rank_by: How the picker puts engines in order.
        settings: The fleet.
        requests: All that will be placed, by number.
        clock: Virtual time.
    """

    rank_by: RankBy
    settings: SimulateSettings
    requests: Sequence[FleetRequest]
    clock: ManualClock


class PickerStrategy:
    """Asks the picker, and reports to it as a gateway does.

    Args:
        parts: Its collaborators.

    Attributes:
        fleet: The picker.
        index: What it knows of caches.
        choices: What it chose for the requests that are not answered, by number.
    """

    def __init__(self, parts: PickerStrategyParts) -> None:
        self.index = SimulatedIndex(parts.settings, parts.clock)
        self._numbers = {engine_address(number): number for number in range(parts.settings.engines)}
        self._knowledge = simulated_knowledge(parts.requests, self.index, parts.clock)
        self.fleet = _picker(parts, self._knowledge)
        self._clock = parts.clock
        self._ticked_ns = 0
        self.choices: dict[int, Choice] = {}

    def place(self, request: FleetRequest) -> int:
        """Return the engine that the picker chooses.

        Raises:
            PickError: It waits, or chooses nothing.
        """
        self._tick()
        choice = in_place(request.number, self.fleet.chooser.choose(question_of(request)))
        if isinstance(choice, Refusal):
            raise PickError(request.number, f"{choice.outcome}: {choice.reason}")
        self.choices[request.number] = choice
        return self._numbers[choice.name]

    def _tick(self) -> None:
        """Let the picker forget what is over, once in a while, as a server does."""
        now_ns = self._clock.monotonic_ns()
        if now_ns - self._ticked_ns >= NS_PER_S:
            self._ticked_ns = now_ns
            self.fleet.tick()
            deque(self._knowledge.sweep_slices(), maxlen=0)

    def cached(self, engine: int, request: FleetRequest, outcome: CacheOutcome) -> None:  # noqa: ARG002 - blocks say it all
        """Let the index hear of it."""
        self.index.cached(engine, outcome)

    def first_token(self, request: FleetRequest, ttft_ns: int) -> None:
        """Report it as a gateway does."""
        follower = self.choices[request.number].follower
        if follower is not None:
            report = FirstTokenReport(
                observed_ttft_ms=ttft_ns // NS_PER_MS, upstream_status=HTTPStatus.OK
            )
            follower.first_token(report)

    def finished(self, request: FleetRequest, cached_tokens: int) -> None:
        """Report the end as a gateway does."""
        choice = self.choices.pop(request.number)
        if choice.follower is not None:
            report = FinalTokenReport(
                model=MODEL,
                prompt_tokens=request.prompt_tokens,
                completion_tokens=max(1, request.output_tokens),
                cached_tokens=cached_tokens,
                itl_bucket_counts=(),
                itl_bucket_layout=0,
            )
            choice.follower.ended(Ending.FINISHED, report)


def _picker(parts: PickerStrategyParts, knowledge: PrefixKnowledge) -> PickerFleet:
    """Return the picker of a server, with the simulated fleet in force."""
    is_profile = parts.rank_by is RankBy.PROFILE
    picker = PickerFleet(
        PickerFleetParts(
            endpoints="",
            director=(
                profile_director(parts.clock, parts.settings.seed) if is_profile else no_plugins()
            ),
            decision_ttl_ns=PickerSettings().decision_ttl_ns,
            prefix=knowledge.signal,
            on_members=knowledge.adopt,
            draw=Random(parts.settings.seed).random,  # noqa: S311 - a simulation is to be repeated
            clock=parts.clock,
            log=simulation_log(),
            choice=PickerChoiceSettings(records_max=0),
        )
    )
    picker.install(fleet_index(simulated_fleet(parts.settings, parts.rank_by)))
    return picker


def simulation_log() -> EventLog:
    """Return the log of simulated parts, which have nothing to say to people."""
    logger = logging.getLogger(f"{LOGGER_NAME}.simulate")
    logger.setLevel(logging.ERROR)
    return StructuredLog(logger)


def in_place(number: int, work: Coroutine[object, object, ResultT]) -> ResultT:
    """Return what *work* returns, without ever waiting.

    Args:
        number: Of the request it is for.
        work: What must not wait.

    Raises:
        PickError: It waits.
    """
    try:
        work.send(None)
    except StopIteration as finished:
        result: ResultT = finished.value
        return result
    work.close()
    raise PickError(number, "its Pick waits for something")
