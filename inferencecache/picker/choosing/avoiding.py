"""Tell apart where a request has just failed and where it has not."""

from collections.abc import Set as AbstractSet

from inferencecache.picker.choosing.tiers import Views


def apart(views: Views, failed: AbstractSet[str]) -> tuple[Views, Views]:
    """Return those of *views* that are not called as one of *failed*, and those that are.

    Complexity: O(candidates), constant where nothing has failed.
    """
    if not failed:
        return views, []
    others: Views = []
    avoided: Views = []
    for tier, tier_views in views:
        for group, has_failed in ((others, False), (avoided, True)):
            kept = [view for view in tier_views if (view.candidate.name in failed) is has_failed]
            if kept:
                group.append((tier, kept))
    return others, avoided
