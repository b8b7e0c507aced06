"""When a tier of a pool is full."""

from collections.abc import Iterable

from inferencecache.picker.decisions import InFlight
from inferencecache.picker.fleet import Candidate, Tier, WorkerSet


def is_full(tier: Tier, candidates: Iterable[Candidate], in_flight: InFlight) -> bool:
    """Return whether *candidates* have as much to do as *tier* lets them have.

    Providers have no number of requests at which they are full.
    """
    counts, load, room = in_flight.counts, 0, 0
    for candidate in candidates:
        member = candidate.member
        if isinstance(member, WorkerSet):
            room += member.priors.concurrency_max
            load += counts.get(candidate.name, 0)
    return bool(room) and load >= room * tier.saturation_max
