"""Choose among everything that a fleet has."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from inferencecache.picker.choice import Choice, QosClass, Question, Refusal
from inferencecache.picker.choosing.fleet_index import FleetIndex
from inferencecache.picker.choosing.fleet_pick import ChooserParts, FleetPick
from inferencecache.picker.choosing.rewriting import Rewriting
from inferencecache.picker.choosing.scope import Scope, scope_of
from inferencecache.picker.choosing.tiers import saturation_of
from inferencecache.picker.choosing.waiting_room import Deferred
from inferencecache.picker.fleet import Candidate
from inferencecache.picker.pipeline import Director

SHED: Final = "shed=deferrable"
"""Why a request that can wait has waited in vain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """What Picks go by, all of it replaced at once.

    Attributes:
        index: The fleet.
        rewriting: Its rewriting rules.
        director: Its plugins.
    """

    index: FleetIndex
    rewriting: Rewriting
    director: Director


class FleetChooser:
    """Chooses among the candidates of the fleet in force.

    A Pick works on what was in force when it began, however long it takes; one that was deferred
    begins when it is let in.

    Args:
        parts: Its collaborators.
        in_force: What Picks go by until it is replaced.

    Attributes:
        in_force: What the next Pick will go by.
        skewed_picks: Picks whose caller had seen another version of its pool.
    """

    def __init__(self, parts: ChooserParts, in_force: InForce) -> None:
        self._parts = parts
        self._placing = parts.placing()
        self.in_force = in_force
        self.skewed_picks = 0

    @property
    def may_lack_model(self) -> bool:
        """Whether anything could stand in for a model that a body does not name."""
        return self.in_force.index.may_lack_model

    async def rehearse(self, question: Question) -> Choice | Refusal:
        """Return where *question* would go by now, as if nobody had asked.

        Plugins that are asked on the way there may take note of it, as they may of anything.
        """
        return await self.choose(question, is_rehearsal=True)

    async def choose(self, question: Question, *, is_rehearsal: bool = False) -> Choice | Refusal:
        """Return where *question* goes, or why nowhere.

        Args:
            question: What has to be chosen for.
            is_rehearsal: See :meth:`rehearse`.
        """
        in_force = self.in_force
        scope = self._scope(question)
        if isinstance(scope, Refusal):
            return scope
        self.skewed_picks += scope.is_skewed and not is_rehearsal
        run = in_force.director.open(question)
        refusal = run.pre_admit()
        if refusal is not None:
            return refusal
        pick = FleetPick(self._parts, self._placing, scope, run, is_rehearsal=is_rehearsal)
        if is_rehearsal or question.qos is not QosClass.DEFERRABLE or pick.denial():
            return await pick.answer(in_force.director.profile_names)
        async with self._parts.room.entered(self._deferred(question, scope)) as is_let_in:
            if not is_let_in:
                return pick.rejected(SHED)
            if self.in_force is not in_force:
                scope = self._scope(question)
                if isinstance(scope, Refusal):
                    return scope
                pick = FleetPick(self._parts, self._placing, scope, run)
            return await pick.answer(in_force.director.profile_names)

    def _scope(self, question: Question) -> Scope | Refusal:
        in_force, settings = self.in_force, self._parts.settings
        return scope_of(question, in_force.index, in_force.rewriting, settings.default_namespace)

    def _deferred(self, question: Question, scope: Scope) -> Deferred:
        """Return how long *question* may wait, and for what: the workers there are at each look."""
        settings, clock = self._parts.settings, self._parts.clock

        def is_calm(ahead: int) -> bool:
            candidates = self._waited_for(question, scope)
            saturation = saturation_of(
                candidates, self._parts.knowledge, clock.monotonic_ns(), ahead
            )
            return saturation <= settings.deferrable_saturation

        until_ns = clock.monotonic_ns() + settings.deferrable_wait_ns
        if question.deadline_ns is not None:
            until_ns = min(until_ns, question.deadline_ns - settings.deadline_margin_ns)
        return Deferred(
            tenant=question.tenant,
            place=(scope.pool.pool.key, scope.model),
            is_calm=is_calm,
            until_ns=until_ns,
        )

    def _waited_for(self, question: Question, scope: Scope) -> Iterator[Candidate]:
        """Yield who serves the model of *scope* by now; nobody where it is served no more."""
        index = self.in_force.index
        everything = question.pool is None
        pool = index.everything if everything else index.pools.get(scope.pool.pool.key)
        for match in () if pool is None else pool.matches(scope.model):
            for row in match.rows:
                yield from row.candidates
