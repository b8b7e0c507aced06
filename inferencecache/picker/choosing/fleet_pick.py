"""One Pick among the candidates of a fleet: rules, candidates, plugins, order, answer.

Rules of this file: between the last step that may wait, the producers, and the answer nothing
waits: limits and suppressions are looked at again there, and what is counted is counted for sure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from inferencecache.clock import Clock
from inferencecache.picker.choice import Choice, Outcome, Question, Refusal
from inferencecache.picker.choosing.aftermath import Aftermath, AftermathParts
from inferencecache.picker.choosing.explain import Account, explained
from inferencecache.picker.choosing.policy_gate import ALLOWED, PolicyGate, Verdict
from inferencecache.picker.choosing.ranking import Ranker
from inferencecache.picker.choosing.scope import Scope
from inferencecache.picker.choosing.suppression import Suppression, is_pickable
from inferencecache.picker.choosing.survey import Survey, SurveyQuestion, survey
from inferencecache.picker.choosing.tiers import is_full
from inferencecache.picker.choosing.windows import context_need
from inferencecache.picker.decisions import InFlight
from inferencecache.picker.explanation import Explanation
from inferencecache.picker.fleet import Candidate, ModelRow, RankBy, Tier
from inferencecache.picker.pipeline import (
    NO_LOAD,
    EndpointView,
    LoadSnapshot,
    PipelineRun,
    Placed,
    Ranking,
)
from inferencecache.picker.pipeline.reasons import token_text
from inferencecache.picker.request import Api
from inferencecache.settings.picker_choice import PickerChoiceSettings

Views = list[tuple[Tier, list[EndpointView]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooserParts:
    """What a chooser works with.

    Attributes:
        settings: Estimates and limits.
        clock: Monotonic time.
        in_flight: What each destination has to do.
        ranker: Puts candidates in order where no profile does.
        suppression: Who is left alone.
        gate: Asks the rules.
    """

    settings: PickerChoiceSettings
    clock: Clock
    in_flight: InFlight
    ranker: Ranker
    suppression: Suppression
    gate: PolicyGate


class FleetPick:
    """One Pick, from its scope to its answer.

    Args:
        parts: The chooser's collaborators.
        aftermath: Who learns from what becomes of it.
        scope: Where to look.
        run: Its way through the plugins, behind their first step.
    """

    def __init__(
        self, parts: ChooserParts, aftermath: AftermathParts, scope: Scope, run: PipelineRun
    ) -> None:
        self._parts = parts
        self._aftermath = aftermath
        self._scope = scope
        self._run = run
        self._question: Question = run.question
        self._need = context_need(self._question.request, parts.settings)
        self._verdicts: dict[ModelRow, Verdict] = {}
        self._degraded: list[str] = []

    async def answer(self, profile_names: Iterable[str]) -> Choice | Refusal:
        """Take the steps in their order.

        Args:
            profile_names: The profiles by which a tier can be ranked.
        """
        denial = self._ask_rules()
        if denial:
            return self._refused(Outcome.POLICY_REJECTED, denial)
        found = self._survey()
        if found.refusal:
            return self._refused(Outcome.NO_WORKERS, found.refusal, found)
        views = self._views(found)
        everybody = [view for _, tier_views in views for view in tier_views]
        await self._run.produce(everybody)
        refusal = self._run.admit(everybody)
        if refusal is not None:
            return self._refused(refusal.outcome, refusal.reason, found, views)
        free, limit = self._still_free(views, found)
        if not free and limit:
            return self._refused(Outcome.POLICY_REJECTED, limit, found, views)
        if not free:
            return self._refused(Outcome.NO_WORKERS, "candidates=suppressed", found, views)
        return self._placed(found, free, frozenset(profile_names))

    def _ask_rules(self) -> str:
        """Ask about every model that could serve; return why not, if it can be none of them."""
        now_ns = self._parts.clock.monotonic_ns()
        for match in self._scope.matches:
            for row in match.rows:
                if row.row not in self._verdicts:
                    self._verdicts[row.row] = self._verdict(row.row, now_ns)
        denials = [verdict.denial for verdict in self._verdicts.values()]
        return denials[0] if all(denials) else ""

    def _verdict(self, row: ModelRow, now_ns: int) -> Verdict:
        """Return what the rules say to *row*, by whatever name they know it."""
        policies = self._scope.policies
        if not policies:
            return ALLOWED
        asked = (self._question.request.model, self._scope.model)
        names = frozenset({*asked, row.name, *row.aliases})
        return self._parts.gate.verdict(policies, self._question, names, now_ns)

    def _survey(self) -> Survey:
        question = SurveyQuestion(
            verdicts=self._verdicts,
            need=self._need,
            api=self._question.request.api,
            overflow=self._scope.pool.pool.context_overflow,
            now_ns=self._parts.clock.monotonic_ns(),
        )
        return survey(self._scope.matches, question, self._parts.suppression)

    def _views(self, found: Survey) -> Views:
        """Return the candidates as plugins see them, all with their load of this moment."""
        counts = self._parts.in_flight.counts
        loads = {0: NO_LOAD}

        def view(candidate: Candidate) -> EndpointView:
            count = counts.get(candidate.name, 0)
            load = loads.get(count)
            if load is None:
                load = loads[count] = LoadSnapshot(requests_in_flight=count)
            return EndpointView(candidate, load)

        return [(field.tier, [view(each) for each in field.candidates]) for field in found.fields]

    def _still_free(self, views: Views, found: Survey) -> tuple[Views, str]:
        """Return who may be picked after the wait, and the limit that keeps others away."""
        gate, now_ns = self._parts.gate, self._parts.clock.monotonic_ns()
        spent = {
            row: limit
            for row, verdict in self._verdicts.items()
            if (limit := gate.exceeded(verdict, self._question, now_ns))
        }
        suppression = self._parts.suppression
        if not spent and (found.panics or not len(suppression)):
            return views, ""
        free = [
            (
                tier,
                [
                    view
                    for view in tier_views
                    if view.candidate.model not in spent
                    and (found.panics or is_pickable(suppression.standing(view.candidate, now_ns)))
                ],
            )
            for tier, tier_views in views
        ]
        return [entry for entry in free if entry[1]], next(iter(spent.values()), "")

    def _placed(
        self, found: Survey, views: Views, profile_names: frozenset[str]
    ) -> Choice | Refusal:
        """Rank tier after tier, full ones last, and take the best of the first that has one."""
        for tier, tier_views, is_last_resort in self._in_order(views):
            ranking = self._ranked(tier, tier_views, profile_names)
            if not ranking.order:
                continue
            placed = self._run.pre_request(ranking)
            if isinstance(placed, Refusal):
                return self._refused(placed.outcome, placed.reason, found, views)
            explanation = self._explained(found, views, tier.name, ranking)
            choice = self._chosen(tier, placed, found, is_full=is_last_resort)
            return replace(choice, explanation=explanation)
        return self._refused(Outcome.NO_WORKERS, "candidates=filtered", found, views)

    def _in_order(self, views: Views) -> list[tuple[Tier, list[EndpointView], bool]]:
        judged = [
            (
                tier,
                tier_views,
                is_full(tier, (view.candidate for view in tier_views), self._parts.in_flight),
            )
            for tier, tier_views in views
        ]
        return sorted(judged, key=lambda entry: entry[2])

    def _ranked(
        self, tier: Tier, views: Sequence[EndpointView], profile_names: frozenset[str]
    ) -> Ranking:
        if tier.rank_by is RankBy.PROFILE or (tier.is_rank_default and profile_names):
            if profile_names and (not tier.profile or tier.profile in profile_names):
                return self._run.rank(views, tier.profile)
            self._degraded.append("profile_missing")
        return self._parts.ranker.rank(views)

    def _chosen(self, tier: Tier, placed: Placed, found: Survey, *, is_full: bool) -> Choice:
        """Count the choice and put it into words."""
        parts, candidate = self._parts, placed.endpoint.candidate
        now_ns = parts.clock.monotonic_ns()
        limits = parts.gate.begin(self._verdicts[candidate.model], now_ns)
        is_trying = parts.suppression.picked(candidate, now_ns)
        parts.ranker.chosen(candidate)
        degraded = [*self._degraded, *self._run.degraded]
        if self._question.request.api is Api.UNKNOWN:
            degraded.insert(0, "shape")
        tokens = {
            "tier": token_text(tier.name),
            "rank": placed.ranking.profile or parts.ranker.name,
            "prefix": "none",
            "target": token_text(candidate.model.name),
            "model": "default" if self._scope.is_default else "",
            "context": "exceeds" if found.exceeds else "",
            "saturated": "1" if is_full else "",
            "pool_version": "skew" if self._scope.is_skewed else "",
            "panic": "1" if found.panics else "",
            "degraded": ",".join(degraded),
        }
        return Choice(
            destination=candidate.destination,
            target_model=candidate.model.name,
            reason=";".join(f"{key}={value}" for key, value in tokens.items() if value),
            is_degraded=found.panics or bool(degraded),
            tier=tier.name,
            candidate=candidate,
            follower=Aftermath(
                self._aftermath, candidate, limits, placed.follower, is_trying=is_trying
            ),
        )

    def _refused(
        self,
        outcome: Outcome,
        reason: str,
        found: Survey | None = None,
        views: Views | None = None,
    ) -> Refusal:
        explanation = self._explained(found, views or [])
        return Refusal(outcome=outcome, reason=reason, explanation=explanation)

    def _explained(
        self,
        found: Survey | None,
        views: Views,
        tier: str = "",
        ranking: Ranking | None = None,
    ) -> Explanation | None:
        settings = self._parts.settings
        if not settings.records_max:
            return None
        account = Account(
            scope=self._scope,
            need=self._need,
            found=found,
            views=[(named.name, tier_views) for named, tier_views in views],
            tier=tier,
            ranking=ranking,
        )
        return explained(account, self._parts.in_flight, settings.record_candidates_max)
