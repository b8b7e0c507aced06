"""Build a cache plane inside the caller's process."""

from dataclasses import dataclass, field

from inferencecache.clock import Clock
from inferencecache.index import PrefixIndex
from inferencecache.policy import PolicyStore
from inferencecache.service import CachePlane, PlaneParts
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.lookup import LookupSettings
from inferencecache.settings.policy import PolicySettings
from inferencecache.settings.ranking import RankingSettings
from inferencecache.transport.system_clock import SystemClock


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings:
    """What a plane without listeners can be told."""

    index: IndexSettings = field(default_factory=IndexSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)
    ranking: RankingSettings = field(default_factory=RankingSettings)
    lookup: LookupSettings = field(default_factory=LookupSettings)


def local_plane(settings: LocalSettings | None = None, clock: Clock | None = None) -> CachePlane:
    """Return a plane of its own; nothing sweeps it but its owner, with ``plane.sweep()``.

    Args:
        settings: Limits and knobs; None takes the defaults.
        clock: Where it takes the time from; None takes the system's.
    """
    settings = settings or LocalSettings()
    policies = PolicyStore(settings.policy, default_ttl_ns=settings.index.ttl_ns)
    return CachePlane(
        PlaneParts(
            index=PrefixIndex(settings.index, policies),
            policies=policies,
            clock=clock or SystemClock(),
            lookup=settings.lookup,
            ranking=settings.ranking,
        )
    )
