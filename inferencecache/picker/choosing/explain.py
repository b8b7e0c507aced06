"""Say how a Pick came about."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from inferencecache.picker.choosing.outlook import Outlook
from inferencecache.picker.choosing.scope import Scope
from inferencecache.picker.choosing.survey import Barrier, Survey, Surveyed
from inferencecache.picker.choosing.windows import ContextNeed
from inferencecache.picker.explanation import ExplainedCandidate as Row
from inferencecache.picker.explanation import Explanation
from inferencecache.picker.fleet import Candidate
from inferencecache.picker.pipeline import EndpointView, Ranking

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
    free = sum(len(views) for _, views in account.views)
    barriers = _barriers(account)
    rows = islice(_rows(account, barriers), candidates_max)
    return Explanation(
        pool=str(pool) if pool.name else "",
        model=account.scope.model,
        need_tokens=account.need.tokens,
        is_counted=account.need.is_exact,
        prompt_tokens=account.outlook.prompt_tokens,
        prefix=account.outlook.found.source.value,
        candidates=tuple(rows),
        candidates_total=free + len(_kept_away(account)),
    )


def _rows(account: Account, barriers: dict[str, str]) -> Iterator[Row]:
    """Yield what was ranked, what could have been, and what was kept away."""
    outlook = account.outlook

    def row(candidate: Candidate, tier: str, rank: int = 0, score: float = 0.0) -> Row:
        load, match = outlook.load_of(candidate), outlook.match_of(candidate)
        return Row(
            name=candidate.name,
            tier=tier,
            model=candidate.model.name,
            barrier=barriers.get(candidate.name, Barrier.NONE.value),
            in_flight=load.requests,
            queued_tokens=load.prefill_tokens,
            waiting=outlook.waiting_at(candidate),
            matched_tokens=match.matched_tokens,
            source=match.source.value,
            estimated_ms=outlook.estimated_ms(candidate),
            predicted_ms=outlook.predicted_ms(candidate) if account.predicts else None,
            rank=rank,
            score=score,
        )

    order = account.ranking.order if account.ranking is not None else ()
    for number, scored in enumerate(order, start=1):
        yield row(scored.endpoint.candidate, account.tier, number, scored.score)
    ranked = {scored.endpoint.name for scored in order}
    for tier, views in account.views:
        for view in views:
            if view.name not in ranked:
                yield row(view.candidate, tier)
    for surveyed in _kept_away(account):
        yield row(surveyed.candidate, "")


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
    kept_away = account.found.kept_away if account.found is not None else ()
    barriers = {name: barrier.value for name, barrier in account.passed_over.items()}
    return barriers | {kept.candidate.name: kept.barrier.value for kept in kept_away}
