"""Build a cache plane inside the caller's process, and feed it what the wire would."""

from dataclasses import dataclass, field

from inferencecache.clock import Clock
from inferencecache.index import EventType, IndexEvent, PrefixIndex, StateUpdate
from inferencecache.policy import PolicyStore
from inferencecache.service import CachePlane, PlaneParts
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.lookup import LookupSettings
from inferencecache.settings.policy import PolicySettings
from inferencecache.settings.ranking import RankingSettings
from inferencecache.transport.client_values import CacheUpdate, HeldPrefix, Removal
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


def state_update(update: CacheUpdate) -> StateUpdate:
    """Return what the index makes of *update*."""
    state = StateUpdate(
        tenant_id=update.replica.tenant_id,
        model_id=update.replica.model_id,
        replica_id=update.replica.replica_id,
        hash_scheme=update.hash_scheme,
        timestamp_ns=update.timestamp_ns,
        adapter_id=update.adapter_id,
    )
    state.stats = update.stats
    for prefix in update.prefixes:
        _add(state, prefix)
    return state


def _add(state: StateUpdate, prefix: HeldPrefix) -> None:
    if not prefix.block_hashes and not prefix.block_token_counts:
        state.add_prefix(prefix.prefix_hash, prefix.token_count, prefix.tier, prefix.adapter_id)
        return
    state.add_chain(
        list(prefix.block_hashes),
        list(prefix.block_token_counts),
        tier=prefix.tier,
        adapter_id=prefix.adapter_id,
        prefix_hash=prefix.prefix_hash,
        token_count=prefix.token_count,
    )


def index_event(removal: Removal) -> IndexEvent:
    """Return what the index makes of *removal*."""
    cleared = removal.prefix_hash is None
    return IndexEvent(
        type=EventType.ALL_CLEARED if cleared else EventType.PREFIX_EVICTED,
        tenant_id=removal.replica.tenant_id,
        model_id=removal.replica.model_id,
        replica_id=removal.replica.replica_id,
        prefix_hash=removal.prefix_hash or b"",
        timestamp_ns=removal.timestamp_ns,
        adapter_id=removal.adapter_id,
    )
