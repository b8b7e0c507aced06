"""Leave out who cannot take a prompt, once somebody has counted its tokens.

Before that, an estimate keeps a request away only from a window that it exceeds by far.
"""

from msgspec.structs import replace

from inferencecache.picker.choosing.survey import Barrier, Survey, Surveyed, refusal_of
from inferencecache.picker.choosing.tiers import Views
from inferencecache.picker.choosing.windows import ContextNeed, CountedNeed
from inferencecache.picker.fleet import Candidate, ContextOverflow

_Case = tuple[int | None, ContextNeed]
"""A window, and what is asked of it."""


def narrowed(
    found: Survey, views: Views, need: CountedNeed, overflow: ContextOverflow
) -> tuple[Survey, Views]:
    """Return who is left of *views*, and the survey that says so.

    Args:
        found: Who could take the request by an estimate.
        views: The same.
        need: What it needs, counted, as each tokenizer does.
        overflow: What becomes of a request that fits nowhere.

    Complexity: O(candidates).
    """
    windows = {view.candidate.model.context_window for _, tier in views for view in tier}
    if all(map(need.most.fits, windows)):
        return found, views
    cases = {_case(view.candidate, need) for _, tier in views for view in tier}
    fitting = {case for case in cases if case[1].fits(case[0])}
    if fitting == cases:
        return found, views
    if not fitting and overflow is ContextOverflow.REJECT:
        away = _without(found, views, need, set())
        kept_away = [
            surveyed._replace(
                fits=need.of(surveyed.candidate).fits(surveyed.candidate.model.context_window)
            )
            for surveyed in away.kept_away
        ]
        return replace(away, fields=(), refusal=refusal_of(kept_away, overflow)), []
    largest = max(window or 0 for window in windows)
    kept = fitting or {case for case in cases if case[0] == largest}
    left = [
        (tier, [view for view in tier_views if _case(view.candidate, need) in kept])
        for tier, tier_views in views
    ]
    away = replace(_without(found, views, need, kept), exceeds=not fitting)
    return away, [entry for entry in left if entry[1]]


def _case(candidate: Candidate, need: CountedNeed) -> _Case:
    return candidate.model.context_window, need.of(candidate)


def _without(found: Survey, views: Views, need: CountedNeed, kept: set[_Case]) -> Survey:
    """Return *found* with those whose case is not *kept* among those that are kept away."""
    out = tuple(
        Surveyed(view.candidate, Barrier.CONTEXT, fits=False)
        for _, tier_views in views
        for view in tier_views
        if _case(view.candidate, need) not in kept
    )
    return replace(found, kept_away=(*found.kept_away, *out))
