"""Put the candidates of a tier in order by the time to the first token.

Rules of this file: the score is milliseconds, the fewest first; of equals, whoever was chosen
longest ago. Where the order rests on predictions, a candidate without one is left out.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from heapq import nsmallest
from itertools import repeat
from typing import Final, NamedTuple

from inferencecache.picker.choosing.exploration import Exploration
from inferencecache.picker.choosing.outlook import Outlook
from inferencecache.picker.fleet import Candidate, RankBy, Tier
from inferencecache.picker.pipeline import EndpointView, Ranking, Scored
from inferencecache.picker.qos import QosClass

_ORDERED_MAX: Final = 16
"""How many of the best are put in order; nobody asks for more."""

_tuple: Final = tuple.__new__
"""Makes a named tuple as its constructor does, but without a call of a Python function."""

ESTIMATED: Final = "estimated"
PREDICTED: Final = "predicted"
FALLBACK: Final = "fallback"
"""Estimated, because of nobody there is a prediction."""


class Ranked(NamedTuple):
    """An order, and what made it.

    Attributes:
        ranking: The order.
        name: What the reason of a Pick calls it.
        unpredicted: Those that were left out because nothing is known of them.
        explores: Whether the first is first because nobody has been there for long.
    """

    ranking: Ranking
    name: str
    unpredicted: tuple[EndpointView, ...] = ()
    explores: bool = False


class ExploringPick(NamedTuple):
    """What decides whether a Pick explores.

    Attributes:
        where: What it picks from.
        qos: How long its request can wait.
    """

    where: tuple[object, ...]
    qos: QosClass


class TtftRanker:
    """Ranks by estimates and predictions.

    Args:
        exploration: Says who explores.
        heard_ns: Returns when a candidate last answered well, -1 if it never did.
    """

    def __init__(self, exploration: Exploration, heard_ns: Callable[[str], int]) -> None:
        self._exploration = exploration
        self._heard_ns = heard_ns
        self._turns: dict[str, int] = {}
        self._turn = 0

    def rank(
        self,
        tier: Tier,
        views: Sequence[EndpointView],
        outlook: Outlook,
        exploring: ExploringPick | None,
    ) -> Ranked:
        """Return *views* in order.

        Args:
            tier: Whose candidates they are; says by what they are ranked.
            views: The candidates.
            outlook: What they would meet.
            exploring: Whether this Pick explores depends on it; None never does.

        Complexity: O(candidates).
        """
        if tier.rank_by is RankBy.PREDICTED_TTFT:
            ranked = self._by_prediction(views, outlook)
        else:
            ranked = Ranked(self.by_estimate(views, outlook), ESTIMATED)
        if exploring is None or not (tier.explores or tier.rank_by is RankBy.PREDICTED_TTFT):
            return ranked
        return self._explored(ranked, self._explorable(tier, views), outlook, exploring)

    def by_estimate(self, views: Sequence[EndpointView], outlook: Outlook) -> Ranking:
        """Return *views* in the order of their estimates; each has one."""
        times = outlook.estimates_ms([view.candidate for view in views])
        return self._ordered(times, views)

    def chosen(self, candidate: Candidate) -> None:
        """Give *candidate* its turn."""
        self._turn += 1
        self._turns[candidate.name] = self._turn

    def retain(self, names: AbstractSet[str]) -> None:
        """Forget whose turn it was, of all but *names*, and what is due to be explored."""
        self._turns = {name: turn for name, turn in self._turns.items() if name in names}
        self._exploration.forget()

    def _by_prediction(self, views: Sequence[EndpointView], outlook: Outlook) -> Ranked:
        predicted: list[EndpointView] = []
        unpredicted: list[EndpointView] = []
        known_ms: list[float] = []
        times = outlook.predictions_ms([view.candidate for view in views])
        for predicted_ms, view in zip(times, views, strict=True):
            if predicted_ms is None:
                unpredicted.append(view)
            else:
                known_ms.append(predicted_ms)
                predicted.append(view)
        return Ranked(self._ordered(known_ms, predicted), PREDICTED, tuple(unpredicted))

    def _ordered(self, times_ms: Sequence[float], views: Sequence[EndpointView]) -> Ranking:
        names = [view.candidate.name for view in views]
        turns = map(self._turns.get, names, repeat(0))
        rows = list(zip(times_ms, turns, names, views, strict=True))
        best = sorted(rows) if len(rows) <= _ORDERED_MAX else nsmallest(_ORDERED_MAX, rows)
        order = tuple([_tuple(Scored, (row[3], row[0])) for row in best])
        return Ranking(profile="", order=order, scored=tuple(views))

    def _explorable(self, tier: Tier, views: Sequence[EndpointView]) -> list[EndpointView]:
        """Return those of whom evidence matters, and who may be sent a request for its sake."""
        is_predicted = tier.rank_by is RankBy.PREDICTED_TTFT
        return [
            view
            for view in views
            if (tier.explores if view.candidate.is_provider else is_predicted)
        ]

    def _explored(
        self,
        ranked: Ranked,
        explorable: Sequence[EndpointView],
        outlook: Outlook,
        exploring: ExploringPick,
    ) -> Ranked:
        """Put the one heard of longest ago first, if it is this Pick's turn.

        One alone of whom nothing is known is not in the order: who comes behind would take it all.
        """
        is_settled = len(ranked.ranking.scored) == 1 and not ranked.unpredicted
        if is_settled or not explorable:
            return ranked
        if not self._exploration.is_due(exploring.where, exploring.qos):
            return ranked
        oldest = min(explorable, key=self._age)
        others = [scored for scored in ranked.ranking.order if scored.endpoint is not oldest]
        if len(others) < len(ranked.ranking.order) and ranked.ranking.order[0].endpoint is oldest:
            return ranked
        situation = outlook.situation_of(oldest.candidate)
        first = Scored(oldest, outlook.expected_ms(oldest.candidate, situation))
        ranking = Ranking(
            profile="",
            order=(first, *others[: _ORDERED_MAX - 1]),
            scored=ranked.ranking.scored,
        )
        return Ranked(ranking, ranked.name, ranked.unpredicted, explores=True)

    def _age(self, view: EndpointView) -> tuple[int, int, str]:
        name = view.candidate.name
        return (self._heard_ns(name), self._turns.get(name, 0), name)
