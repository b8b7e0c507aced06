"""In which order the tiers of a pool are tried: full ones last, and who may spill where.

Rules of this file: a tier whose workers have all they can do is passed over while another has room.
Providers cost money, so a request goes on to one for that reason only where the pool says so, and
only if it cannot wait. Where nobody has room, the first tier takes it: engines queue.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inferencecache.picker.choosing.outlook import Knowledge
from inferencecache.picker.fleet import Candidate, Tier
from inferencecache.picker.pipeline import EndpointView

Views = list[tuple[Tier, list[EndpointView]]]
"""The candidates of a Pick by tier, in the pool's order; no tier is empty."""


class TierTurn(NamedTuple):
    """A tier to be tried.

    Attributes:
        tier: Which one.
        views: Its candidates, or some of them.
        is_full: Whether it is tried although its workers have all they can do.
    """

    tier: Tier
    views: Sequence[EndpointView]
    is_full: bool = False


def saturation_of(
    candidates: Iterable[Candidate], knowledge: Knowledge, now_ns: int, ahead: int = 0
) -> float:
    """Return which share of what the workers among *candidates* can do at once they have to do.

    Providers have no number of requests at which they are full; they alone are never full.

    Args:
        candidates: Whose room is meant.
        knowledge: What they have to do.
        now_ns: Monotonic time.
        ahead: Requests that are about to be given to them, besides.

    Complexity: O(candidates).
    """
    requests, room = ahead, 0
    load_of, hears_engines = knowledge.loads.loads.get, bool(knowledge.signals.latest)
    for candidate in candidates:
        priors = candidate.priors
        if priors is None:
            continue
        room += priors.concurrency_max
        if hears_engines:
            requests += knowledge.queue_of(candidate, now_ns).requests
        elif load := load_of(candidate.name):
            requests += load.requests
    return requests / room if room else 0.0


def in_order(views: Views, knowledge: Knowledge, now_ns: int, *, may_spill: bool) -> list[TierTurn]:
    """Return the tiers in the order in which they are tried.

    Args:
        views: Their candidates.
        knowledge: What these have to do.
        now_ns: Monotonic time.
        may_spill: Whether the request may go to a provider because workers before it are full.

    Complexity: O(candidates).
    """
    free: list[TierTurn] = []
    full: list[TierTurn] = []
    spared: list[TierTurn] = []
    for tier, tier_views in views:
        saturation = saturation_of([view.candidate for view in tier_views], knowledge, now_ns)
        is_full = saturation >= tier.saturation_max
        left = tier_views
        if full and not may_spill:
            providers = [view for view in tier_views if view.candidate.is_provider]
            if providers:
                spared.append(TierTurn(tier, providers))
                left = [view for view in tier_views if not view.candidate.is_provider]
        if left:
            (full if is_full else free).append(TierTurn(tier, left, is_full))
    return [*free, *full, *spared]
