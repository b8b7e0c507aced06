"""Say how a Pick came about."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec

from inferencecache.picker.choosing.explained_rows import Columns, ExplainedRows
from inferencecache.picker.choosing.outlook import Outlook
from inferencecache.picker.choosing.scope import Scope
from inferencecache.picker.choosing.survey import Barrier, Survey, Surveyed
from inferencecache.picker.choosing.windows import ContextNeed
from inferencecache.picker.explanation import Explanation
from inferencecache.picker.fleet import Candidate
from inferencecache.picker.pipeline import EndpointView, Ranking

_NO_BARRIER: Final = Barrier.NONE.value

TierViews = list[tuple[str, list[EndpointView]]]
"""Names of tiers, and their candidates that could be picked."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
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

    @property
    def free(self) -> int:
        """How many could be picked."""
        return sum([len(views) for _, views in self.views])


def explained(account: Account, candidates_max: int) -> Explanation:
    """Return *account* as it is kept, with at most *candidates_max* candidates."""
    pool = account.scope.pool.pool.key
    kept_away = _kept_away(account)
    return Explanation(
        pool=str(pool) if pool.name else "",
        model=account.scope.model,
        need_tokens=account.need.tokens,
        is_counted=account.need.is_exact,
        prompt_tokens=account.outlook.prompt_tokens,
        prefix=account.outlook.found.source,
        candidates=ExplainedRows(_columns(account, kept_away, candidates_max)),
        candidates_total=account.free + len(kept_away),
    )


def _columns(account: Account, kept_away: Sequence[Surveyed], candidates_max: int) -> Columns:
    """Return what is known of whoever was ranked, could have been, and was kept away."""
    order = account.ranking.order[:candidates_max] if account.ranking is not None else ()
    candidates = [scored.endpoint.candidate for scored in order]
    tiers = [account.tier] * len(order)
    if len(order) < candidates_max:
        _add_others(account, kept_away, candidates_max, (candidates, tiers))
    away = _barriers(account)
    return Columns(
        facts=account.outlook.facts_of(candidates, predicts=account.predicts),
        tiers=tiers,
        barriers=[away.get(each.name, _NO_BARRIER) for each in candidates] if away else None,
        scores=[scored.score for scored in order],
    )


def _add_others(
    account: Account,
    kept_away: Sequence[Surveyed],
    candidates_max: int,
    found: tuple[list[Candidate], list[str]],
) -> None:
    """Add to *found*, candidates and their tiers, those that were not ranked, as far as wanted."""
    candidates, tiers = found
    ranked = {candidate.name for candidate in candidates}
    if len(ranked) < account.free:
        for tier, views in account.views:
            others = (view.candidate for view in views if view.name not in ranked)
            candidates.extend(islice(others, candidates_max - len(candidates)))
            tiers += [tier] * (len(candidates) - len(tiers))
    kept = kept_away[: candidates_max - len(candidates)]
    candidates += [surveyed.candidate for surveyed in kept]
    tiers += [""] * len(kept)


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
