"""Say how a Pick came about."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from inferencecache.picker.choosing.outlook import Outlook
from inferencecache.picker.choosing.scope import Scope
from inferencecache.picker.choosing.survey import Barrier, Survey, Surveyed
from inferencecache.picker.choosing.windows import ContextNeed
from inferencecache.picker.explanation import ExplainedCandidate as Row
from inferencecache.picker.explanation import Explanation
from inferencecache.picker.fleet import Candidate
from inferencecache.picker.pipeline import EndpointView, Ranking

_tuple: Final = tuple.__new__
"""Makes a named tuple as its constructor does, but without a call of a Python function."""

_NO_BARRIER: Final = Barrier.NONE.value

_Placed = tuple[Candidate, str, int, float]
"""A candidate, its tier, its rank and its score."""

TierViews = list[tuple[str, list[EndpointView]]]
"""Names of tiers, and their candidates that could be picked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What is known of a Pick when it is over.

    Attributes:
        scope: Where it was looked.
        need: What the request asks of a context window.
        outlook: What the request would meet at each.
        found: Who could take it; None where that was not looked at.
        views: The same, as plugins saw them.
        passed_over: Why some of them could not be ranked, by name.
        predicts: Whether anybody wants to know what is predicted.
        tier: Name of the tier that was chosen; empty if none was.
        ranking: Its order.
    """

    scope: Scope
    need: ContextNeed
    outlook: Outlook
    found: Survey | None = None
    views: TierViews
    passed_over: Mapping[str, Barrier]
    predicts: bool
    tier: str = ""
    ranking: Ranking | None = None


def explained(account: Account, candidates_max: int) -> Explanation:
    """Return *account* as it is kept, with at most *candidates_max* candidates."""
    pool = account.scope.pool.pool.key
    kept_away = _kept_away(account)
    free = sum(len(views) for _, views in account.views)
    return Explanation(
        pool=str(pool) if pool.name else "",
        model=account.scope.model,
        need_tokens=account.need.tokens,
        is_counted=account.need.is_exact,
        prompt_tokens=account.outlook.prompt_tokens,
        prefix=account.outlook.found.source,
        candidates=_rows(account, islice(_placed(account, kept_away), candidates_max)),
        candidates_total=free + len(kept_away),
    )


def _placed(account: Account, kept_away: Sequence[Surveyed]) -> Iterator[_Placed]:
    """Yield what was ranked, what could have been, and what was kept away."""
    order = account.ranking.order if account.ranking is not None else ()
    for number, scored in enumerate(order, start=1):
        yield scored.endpoint.candidate, account.tier, number, scored.score
    ranked = {scored.endpoint.candidate.name for scored in order}
    for tier, views in account.views:
        for view in views:
            if view.candidate.name not in ranked:
                yield view.candidate, tier, 0, 0.0
    for surveyed in kept_away:
        yield surveyed.candidate, "", 0, 0.0


def _rows(account: Account, placed: Iterable[_Placed]) -> tuple[Row, ...]:
    """Return what is known of each; every Pick makes so many of them that each step counts."""
    outlook, predicts, barriers = account.outlook, account.predicts, _barriers(account)
    return tuple(
        [
            _tuple(
                Row,
                (
                    candidate.name,
                    tier,
                    candidate.model.name,
                    barriers.get(candidate.name, _NO_BARRIER),
                    *outlook.facts_of(candidate),
                    outlook.predicted_ms(candidate) if predicts else None,
                    rank,
                    score,
                ),
            )
            for candidate, tier, rank, score in placed
        ]
    )


def _kept_away(account: Account) -> Sequence[Surveyed]:
    """Return the candidates that nobody could have picked."""
    found = account.found
    if found is None:
        return ()
    if not (found.panics or found.exceeds):
        return found.kept_away
    tried = {view.name for _, views in account.views for view in views}
    return [kept for kept in found.kept_away if kept.candidate.name not in tried]


def _barriers(account: Account) -> dict[str, str]:
    """Return what keeps, or should have kept, candidates away."""
    barriers = {name: barrier.value for name, barrier in account.passed_over.items()}
    if account.found is not None:
        for kept in account.found.kept_away:
            barriers[kept.candidate.name] = kept.barrier.value
    return barriers
