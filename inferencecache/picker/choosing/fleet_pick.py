"""One Pick among the candidates of a fleet: rules, candidates, signals, plugins, order, answer.

Rules of this file: between the last step that may wait, the producers, and the answer nothing
waits: limits and suppressions are looked at again there, and what is counted is counted for sure.
A rehearsal takes the same steps up to that, and leaves nothing behind.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from inferencecache.clock import Clock
from inferencecache.picker.choice import Choice, Outcome, QosClass, Question, Refusal
from inferencecache.picker.choosing.aftermath import AftermathParts
from inferencecache.picker.choosing.avoiding import apart
from inferencecache.picker.choosing.explain import Account, explained
from inferencecache.picker.choosing.failed_places import FailedPlaces, RequestName
from inferencecache.picker.choosing.learning import LearningObserver, LearnsNothing
from inferencecache.picker.choosing.narrowing import narrowed
from inferencecache.picker.choosing.outlook import Knowledge, Outlook
from inferencecache.picker.choosing.placing import Chosen, PlacingParts, choice_of, placed
from inferencecache.picker.choosing.policy_gate import ALLOWED, PolicyGate, Verdict
from inferencecache.picker.choosing.ranking import FALLBACK, ExploringPick, Ranked, TtftRanker
from inferencecache.picker.choosing.scope import Scope
from inferencecache.picker.choosing.suppression import Suppression, is_pickable
from inferencecache.picker.choosing.survey import Barrier, Survey, SurveyQuestion, survey
from inferencecache.picker.choosing.tiers import TierTurn, Views, in_order
from inferencecache.picker.choosing.views import given_to_plugins, views_of
from inferencecache.picker.choosing.waiting_room import NoWaitingRoom, WaitingRoom
from inferencecache.picker.choosing.windows import context_need, counted_need, prompt_tokens_of
from inferencecache.picker.explanation import Explanation
from inferencecache.picker.fleet import ModelRow, RankBy, Tier
from inferencecache.picker.pipeline import EndpointView, PipelineRun, Ranking
from inferencecache.picker.prefix import NoPrefixSignal, PrefixSignal
from inferencecache.picker.prefix.signal import NO_LENGTHS
from inferencecache.settings.picker_choice import PickerChoiceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooserParts:
    """What a chooser works with.

    Attributes:
        settings: Estimates and limits.
        clock: Monotonic time.
        knowledge: What each candidate has to do, and how long it takes.
        ranker: Puts candidates in order where no profile does.
        suppression: Who is left alone.
        failed: Where requests have just failed.
        gate: Asks the rules.
        prefix: Knows where prompts are warm.
        observer: Told what is learnt.
        room: Where requests wait that can.
    """

    settings: PickerChoiceSettings
    clock: Clock
    knowledge: Knowledge
    ranker: TtftRanker
    suppression: Suppression
    failed: FailedPlaces
    gate: PolicyGate
    prefix: PrefixSignal = field(default_factory=NoPrefixSignal)
    observer: LearningObserver = field(default_factory=LearnsNothing)
    room: WaitingRoom = field(default_factory=NoWaitingRoom)

    def placing(self) -> PlacingParts:
        """Return those that take note of choices."""
        return PlacingParts(
            knowledge=self.knowledge,
            ranker=self.ranker,
            suppression=self.suppression,
            gate=self.gate,
            observer=self.observer,
            aftermath=AftermathParts(
                suppression=self.suppression,
                failed=self.failed,
                gate=self.gate,
                clock=self.clock,
            ),
            clock=self.clock,
        )


class FleetPick:
    """One Pick, from its scope to its answer.

    Args:
        parts: The chooser's collaborators.
        placing: Who takes note of the choice.
        scope: Where to look.
        run: Its way through the plugins, behind their first step.
        is_rehearsal: Whether nobody is to take note of it.
    """

    def __init__(
        self,
        parts: ChooserParts,
        placing: PlacingParts,
        scope: Scope,
        run: PipelineRun,
        *,
        is_rehearsal: bool = False,
    ) -> None:
        self._parts = parts
        self._placing = placing
        self._scope = scope
        self._run = run
        self._is_rehearsal = is_rehearsal
        self._question: Question = run.question
        request = self._question.request
        self._need = context_need(request, parts.settings)
        self._outlook = Outlook(
            knowledge=parts.knowledge, prompt_tokens=prompt_tokens_of(request, parts.settings)
        )
        self._verdicts: dict[ModelRow, Verdict] = {}
        self._degraded: list[str] = []
        self._passed_over: dict[str, Barrier] = {}
        self._is_avoiding = False
        self._is_explained = is_rehearsal or bool(parts.settings.records_max)

    async def answer(self, profile_names: Collection[str]) -> Choice | Refusal:
        """Take the steps in their order.

        Args:
            profile_names: The profiles by which a tier can be ranked.
        """
        denial = self.denial()
        if denial:
            return self.rejected(denial)
        found, views = await self._sensed(self._survey())
        if found.refusal:
            return self._refused(Outcome.NO_WORKERS, found.refusal, found)
        everybody = [view for _, tier_views in views for view in tier_views]
        if self._run.has_plugins:
            self._run.give(given_to_plugins(everybody, self._outlook))
        await self._run.produce(everybody)
        refusal = self._run.admit(everybody)
        if refusal is not None:
            return self._refused(refusal.outcome, refusal.reason, found, views)
        free, limit = self._still_free(views, found)
        if not free and limit:
            return self._refused(Outcome.POLICY_REJECTED, limit, found, views)
        if not free:
            return self._refused(Outcome.NO_WORKERS, "candidates=suppressed", found, views)
        return self._ranked_and_placed(found, free, profile_names)

    def rejected(self, why: str) -> Refusal:
        """Return the answer to a request that is not let in, with the reason *why*."""
        return self._refused(Outcome.POLICY_REJECTED, why)

    def denial(self) -> str:
        """Ask the rules about every model that could serve; return why not, if it can be none."""
        if not self._scope.policies:
            return ""
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

    async def _sensed(self, found: Survey) -> tuple[Survey, Views]:
        """Find out where the prompt is warm, and leave out whom its length is too much for."""
        parts, request = self._parts, self._question.request
        now_ns = parts.clock.monotonic_ns()
        if found.refusal:
            self._outlook = replace(self._outlook, now_ns=now_ns)
            return found, []
        views = views_of(found, parts.knowledge if self._run.has_plugins else None, now_ns)
        candidates = [view.candidate for _, tier_views in views for view in tier_views]
        warm = await parts.prefix.sense(self._question, candidates)
        estimated = prompt_tokens_of(request, parts.settings, warm.believed_tokens)
        if request.has_several_prompts and estimated > (warm.prompt_tokens or 0):
            # The first of them was counted, but another one is the longest.
            warm = replace(warm, prompt_tokens=None, lengths=NO_LENGTHS)
        counted = warm.prompt_tokens
        tokens = estimated if counted is None else counted
        is_batch = self._question.qos is QosClass.BATCH
        self._outlook = Outlook(
            knowledge=parts.knowledge,
            found=warm,
            prompt_tokens=tokens,
            is_counted=counted is not None or request.prompt_tokens == estimated,
            spread=parts.settings.batch_spread if is_batch else 1.0,
            now_ns=parts.clock.monotonic_ns(),
        )
        if counted is None or found.exceeds:
            return found, views
        need = counted_need(request, counted, warm.lengths)
        self._need = need.most
        return narrowed(found, views, need, self._scope.pool.pool.context_overflow)

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

    def _ranked_and_placed(
        self, found: Survey, views: Views, profile_names: Collection[str]
    ) -> Choice | Refusal:
        """Choose where the request has not just failed; if nobody is left there, anywhere."""
        question, now_ns = self._question, self._parts.clock.monotonic_ns()
        request = RequestName(question.tenant, question.client_request_id)
        others, avoided = apart(views, self._parts.failed.of(request, now_ns))
        best = self._best(others, profile_names, now_ns)
        if avoided and isinstance(best, str):
            best = self._best(avoided, profile_names, now_ns)
        elif avoided:
            self._is_avoiding = True
            self._pass_over((view for _, group in avoided for view in group), Barrier.FAILED_HERE)
        if isinstance(best, str):
            return self._refused(Outcome.NO_WORKERS, best, found, views)
        return self._placed(*best, found, views)

    def _best(
        self, views: Views, profile_names: Collection[str], now_ns: int
    ) -> tuple[TierTurn, Ranked] | str:
        """Rank tier after tier, full ones last, up to the first that has somebody.

        Returns:
            That tier and its order, or why there is none.
        """
        may_spill = (
            self._question.qos is QosClass.INTERACTIVE and self._scope.pool.pool.spills_to_providers
        )
        blind: list[tuple[TierTurn, Ranked]] = []
        turns = in_order(views, self._parts.knowledge, now_ns, may_spill=may_spill)
        for turn in turns:
            ranked = self._ranked(turn.tier, turn.views, profile_names)
            self._note_left_out(turn, ranked)
            if ranked.ranking.order:
                return turn, ranked
            if ranked.unpredicted:
                blind.append((turn, ranked))
        for turn, ranked in blind:
            local = [view for view in ranked.unpredicted if not view.candidate.is_provider]
            if local:
                ranking = self._parts.ranker.by_estimate(local, self._outlook)
                return turn, Ranked(ranking, FALLBACK)
        return "candidates=unpredicted" if blind else "candidates=filtered"

    def _ranked(
        self, tier: Tier, views: Sequence[EndpointView], profile_names: Collection[str]
    ) -> Ranked:
        if tier.rank_by is RankBy.PROFILE or (tier.is_rank_default and profile_names):
            if profile_names and (not tier.profile or tier.profile in profile_names):
                ranking = self._run.rank(views, tier.profile)
                return Ranked(ranking, ranking.profile)
            self._degraded.append("profile_missing")
        exploring = None
        if not self._is_rehearsal:
            where = (self._scope.pool.pool.key, tier.name, self._scope.model)
            exploring = ExploringPick(where, self._question.qos)
        return self._parts.ranker.rank(tier, views, self._outlook, exploring)

    def _note_left_out(self, turn: TierTurn, ranked: Ranked) -> None:
        """Remember, for whoever asks, why candidates of a tier are not in its order."""
        if not self._is_explained:
            return
        if len(ranked.ranking.scored) == len(turn.views):
            return
        kept = {id(view) for view in (*ranked.ranking.scored, *ranked.unpredicted)}
        self._pass_over(ranked.unpredicted, Barrier.UNPREDICTED)
        self._pass_over((view for view in turn.views if id(view) not in kept), Barrier.FILTERED)

    def _pass_over(self, views: Iterable[EndpointView], barrier: Barrier) -> None:
        """Remember, for whoever asks, that *barrier* keeps *views* away."""
        if self._is_explained:
            for view in views:
                self._passed_over[view.name] = barrier

    def _placed(
        self, turn: TierTurn, ranked: Ranked, found: Survey, views: Views
    ) -> Choice | Refusal:
        """Tell plugins, count the choice, and put it into words."""
        explanation = self._explained(found, views, turn.tier.name, ranked.ranking)
        candidate, plugins = ranked.ranking.order[0].endpoint.candidate, None
        if not self._is_rehearsal:
            told = self._run.pre_request(ranked.ranking)
            if isinstance(told, Refusal):
                return self._refused(told.outcome, told.reason, found, views)
            candidate, plugins = told.endpoint.candidate, told.follower
        chosen = Chosen(
            candidate=candidate,
            turn=turn,
            ranked=ranked,
            scope=self._scope,
            found=found,
            outlook=self._outlook,
            is_avoiding=self._is_avoiding,
            degraded=(*self._degraded, *self._run.degraded),
            explanation=explanation,
        )
        if self._is_rehearsal:
            return choice_of(chosen, self._question, None)
        verdict = self._verdicts[candidate.model] if self._verdicts else ALLOWED
        return placed(chosen, self._question, verdict, self._placing, plugins)

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
        if not self._is_explained:
            return None
        account = Account(
            scope=self._scope,
            need=self._need,
            outlook=self._outlook,
            found=found,
            views=[(named.name, tier_views) for named, tier_views in views],
            passed_over=self._passed_over,
            predicts=self._is_rehearsal
            or RankBy.PREDICTED_TTFT in [match.tier.rank_by for match in self._scope.matches],
            tier=tier,
            ranking=ranking,
        )
        return explained(account, self._parts.settings.record_candidates_max)
