"""Leave out who cannot take a prompt, once somebody has counted its tokens.

Before that, an estimate keeps a request away only from a window that it exceeds by far.
"""

from msgspec.structs import replace

from inferencecache.picker.choosing.survey import Barrier, Survey, Surveyed, refusal_of
from inferencecache.picker.choosing.tiers import Views
from inferencecache.picker.choosing.windows import ContextNeed
from inferencecache.picker.fleet import ContextOverflow


def narrowed(
    found: Survey, views: Views, need: ContextNeed, overflow: ContextOverflow
) -> tuple[Survey, Views]:
    """Return who is left of *views*, and the survey that says so.

    Args:
        found: Who could take the request by an estimate.
        views: The same.
        need: What it needs, counted.
        overflow: What becomes of a request that fits nowhere.

    Complexity: O(candidates).
    """
    windows = {view.candidate.model.context_window for _, tier in views for view in tier}
    fitting = {window for window in windows if need.fits(window)}
    if fitting == windows:
        return found, views
    if not fitting and overflow is ContextOverflow.REJECT:
        away = _without(found, views, set())
        kept_away = [
            surveyed._replace(fits=need.fits(surveyed.candidate.model.context_window))
            for surveyed in away.kept_away
        ]
        return replace(away, fields=(), refusal=refusal_of(kept_away, overflow)), []
    kept = fitting or {max(window or 0 for window in windows)}
    left = [
        (tier, [view for view in tier_views if view.candidate.model.context_window in kept])
        for tier, tier_views in views
    ]
    away = replace(_without(found, views, kept), exceeds=not fitting)
    return away, [entry for entry in left if entry[1]]


def _without(found: Survey, views: Views, kept: set[int | None]) -> Survey:
    """Return *found* with those whose window is not *kept* among those that are kept away."""
    out = tuple(
        Surveyed(view.candidate, Barrier.CONTEXT, fits=False)
        for _, tier_views in views
        for view in tier_views
        if view.candidate.model.context_window not in kept
    )
    return replace(found, kept_away=(*found.kept_away, *out))
