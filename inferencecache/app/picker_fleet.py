"""What the picker picks from: the fleet in force, whoever chooses from it, and its reloads."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field, replace

from inferencecache.clock import Clock
from inferencecache.picker.choosing import (
    ChooserParts,
    Exploration,
    FailedPlaces,
    FleetChooser,
    FleetIndex,
    InForce,
    Knowledge,
    Limits,
    PolicyGate,
    Rewriting,
    Suppression,
    TtftRanker,
    fleet_index,
    fleet_index_slices,
)
from inferencecache.picker.fixed_endpoints import read_endpoints, with_fixed
from inferencecache.picker.fleet import EMPTY_FLEET, Fleet, Member
from inferencecache.picker.load import EngineSignals, LoadTable
from inferencecache.picker.pipeline import Director
from inferencecache.picker.prefix import NoPrefixSignal, PrefixSignal
from inferencecache.picker.ttft import Foresight
from inferencecache.resources import LoadState
from inferencecache.settings.fleet import FleetSettings
from inferencecache.settings.metrics import MetricsSettings
from inferencecache.settings.picker_choice import PickerChoiceSettings, PickerSuppressionSettings
from inferencecache.settings.picker_load import PickerLoadSettings
from inferencecache.settings.picker_ttft import TtftSettings
from inferencecache.transport.picker_learning import ReportedLearning
from inferencecache.transport.picker_scrape import EngineScrapes
from inferencecache.transport.picker_suppression import ReportedSuppressions
from inferencecache.transport.picker_waiting import DeferredRequests
from inferencecache.transport.random_ids import random_jitter, random_share
from inferencecache.transport.structured_log import EventLog


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerFleetParts:
    """What a fleet is kept with.

    Attributes:
        endpoints: Fixed destinations, as their setting has them.
        director: Takes Picks through the plugins.
        decision_ttl_ns: How long a decision is remembered about which nobody says anything.
        clock: Monotonic time.
        log: Told of what changes.
        choice: How destinations are chosen.
        suppression: When one that fails is left alone.
        fleet: What is believed of engines.
        load: How long a silent request counts.
        ttft: How the time to a first token is foreseen.
        prefix: Knows where prompts are warm.
        on_members: Told of the members of each fleet that comes into force.
        labels_max: Most candidates of whom numbers are shown by themselves.
        draw: Draws a number from 0 up to, but not including, 1.
        loaded: Returns the fleet of the files; None where there are none.
    """

    endpoints: str
    director: Director
    decision_ttl_ns: int
    clock: Clock
    log: EventLog
    choice: PickerChoiceSettings = field(default_factory=PickerChoiceSettings)
    suppression: PickerSuppressionSettings = field(default_factory=PickerSuppressionSettings)
    fleet: FleetSettings = field(default_factory=FleetSettings)
    load: PickerLoadSettings = field(default_factory=PickerLoadSettings)
    ttft: TtftSettings = field(default_factory=TtftSettings)
    prefix: PrefixSignal = field(default_factory=NoPrefixSignal)
    on_members: Callable[[Iterable[Member]], None] = lambda _: None
    labels_max: int = MetricsSettings().labels_max
    draw: Callable[[], float] = random_share
    loaded: Callable[[], Fleet] | None = None


class PickerFleet:
    """Keeps one fleet in force, and replaces it whole.

    Args:
        parts: Its collaborators.

    Raises:
        ConfigError: The fixed endpoints have another form.

    Attributes:
        chooser: Chooses from what is in force.
        suppression: Who is left alone.
        failed: Where requests have just failed.
        limits: What tenants have asked for.
        knowledge: What each candidate has to do, and how long it takes.
        suppressions: What was told of it.
        learning: What was learnt from reports.
        scrapes: Reads what engines say of their load.
        room: Where requests wait that can.
        is_valid: Whether there was, once, a fleet to go by: with somebody in it, or without an
            error in its files.
    """

    def __init__(self, parts: PickerFleetParts) -> None:
        self._parts = parts
        self._director = parts.director
        self._fixed = read_endpoints(parts.endpoints)
        self.learning = ReportedLearning(parts.labels_max)
        self.knowledge = Knowledge(
            loads=LoadTable(parts.load, parts.decision_ttl_ns, parts.clock),
            signals=EngineSignals(parts.load.signal_stale_ns),
            foresight=Foresight(parts.ttft),
        )
        self._ranker = TtftRanker(
            Exploration(parts.choice.explore_share, parts.draw), self.knowledge.foresight.heard_ns
        )
        self.room = DeferredRequests(parts.choice.deferrable_queue_max, parts.clock)
        self.scrapes = EngineScrapes(parts.load, self.knowledge.signals, parts.clock, parts.log)
        self.suppressions = ReportedSuppressions(parts.log)
        self.suppression = Suppression(parts.suppression, random_jitter, self.suppressions)
        choice = parts.choice
        self.failed = FailedPlaces(choice.failures_kept_max, choice.failures_kept_ns)
        self.limits = Limits(choice.limited_tenants_max)
        index = fleet_index(with_fixed(EMPTY_FLEET, self._fixed, parts.fleet))
        self.chooser = FleetChooser(
            ChooserParts(
                settings=parts.choice,
                clock=parts.clock,
                knowledge=self.knowledge,
                ranker=self._ranker,
                suppression=self.suppression,
                failed=self.failed,
                gate=PolicyGate(self.limits),
                prefix=parts.prefix,
                observer=self.learning,
                room=self.room,
            ),
            self._in_force(index),
        )
        self._adopt(index)
        self.is_valid = parts.loaded is None

    def apply_slices(self, load: LoadState) -> Generator[None, None, None]:
        """Put the fleet that was made of *load* into force, in the last slice."""
        loaded = EMPTY_FLEET if self._parts.loaded is None else self._parts.loaded()
        fleet = with_fixed(loaded, self._fixed, self._parts.fleet)
        index = yield from fleet_index_slices(fleet)
        self.install(index)
        self.is_valid = self.is_valid or not load.errors or bool(_members(fleet))

    def install(self, index: FleetIndex) -> None:
        """Let the next Pick go by *index*; those that have begun go on with what they have."""
        self.chooser.in_force = self._in_force(index)
        self._adopt(index)
        self._ranker.retain(index.names)
        self.knowledge.foresight.retain(index.names)
        self.knowledge.signals.retain(index.names)
        self.learning.retain(index.names)

    def use(self, director: Director) -> None:
        """Let the next Pick go through the plugins of *director*; those under way keep theirs."""
        self._director = director
        self.chooser.in_force = replace(self.chooser.in_force, director=director)

    def profile_names(self) -> tuple[str, ...]:
        """Return the scheduling profiles that the plugins have."""
        return self.chooser.in_force.director.profile_names

    def tick(self) -> None:
        """Let go of what is over, without anybody having asked for it."""
        now_ns = self._parts.clock.monotonic_ns()
        self.limits.forget(now_ns)
        self.failed.expire(now_ns)
        self.knowledge.loads.expire(now_ns)
        self.room.look()

    def _adopt(self, index: FleetIndex) -> None:
        members = _members(index.fleet)
        self.suppression.adopt(members)
        self.scrapes.watch(members)
        self._parts.on_members(members)

    def _in_force(self, index: FleetIndex) -> InForce:
        return InForce(
            index=index,
            rewriting=Rewriting(index.fleet.rewrites, self._parts.draw),
            director=self._director,
        )


def _members(fleet: Fleet) -> list[Member]:
    """Return every member of *fleet*."""
    pools = (fleet.everything, *fleet.pools.values())
    return [member for pool in pools for tier in pool.tiers for member in tier.members]
