"""The cache plane beside a simulated fleet, told of what caches take in and throw out."""

from dataclasses import replace

from inferencecache.app.replay_plane import HASH_SCHEME
from inferencecache.app.simulate_fleet import MODEL, TENANT, engine_name
from inferencecache.clock import Clock
from inferencecache.index import EventType, IndexEvent, PrefixIndex, StateUpdate
from inferencecache.picker.prefix.sightings import Sightings
from inferencecache.policy import PolicyStore
from inferencecache.service.plane import CachePlane, PlaneParts
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.policy import PolicySettings
from inferencecache.settings.simulate import SimulateSettings
from inferencecache.simulation import TRACE_BLOCK_TOKENS, CacheOutcome


class SimulatedIndex:
    """A plane that hears of everything at once.

    Args:
        settings: How much the fleet can hold.
        clock: Virtual time.

    Attributes:
        plane: What it has heard.
        sightings: When it has heard of whom; an engine says at its start that it is empty.
    """

    def __init__(self, settings: SimulateSettings, clock: Clock) -> None:
        self.sightings = Sightings(settings.engines)
        policies = PolicyStore(PolicySettings(), settings.index_ttl_ns)
        self.plane = CachePlane(
            PlaneParts(
                index=PrefixIndex(_sizes(settings), policies),
                policies=policies,
                clock=clock,
                replicas=self.sightings,
            )
        )
        for engine in range(settings.engines):
            self.cleared(engine)

    def cached(self, engine: int, outcome: CacheOutcome) -> None:
        """Report what has changed in the cache of *engine*: evictions first, as engines do.

        Complexity: O(blocks that changed).
        """
        for block_hash in outcome.evicted:
            self.plane.publish(_event(EventType.PREFIX_EVICTED, engine, block_hash))
        if outcome.stored:
            self.plane.report(_update(engine, outcome))

    def cleared(self, engine: int) -> None:
        """Report that the cache of *engine* is empty."""
        self.plane.publish(_event(EventType.ALL_CLEARED, engine))


def _sizes(settings: SimulateSettings) -> IndexSettings:
    defaults = IndexSettings()
    held_blocks = settings.engines * settings.cache_blocks
    return replace(
        defaults,
        entries_max=max(defaults.entries_max, held_blocks),
        ttl_ns=settings.index_ttl_ns,
    )


def _event(kind: EventType, engine: int, block_hash: bytes = b"") -> IndexEvent:
    return IndexEvent(
        type=kind,
        tenant_id=TENANT,
        model_id=MODEL,
        replica_id=engine_name(engine),
        prefix_hash=block_hash,
    )


def _update(engine: int, outcome: CacheOutcome) -> StateUpdate:
    """Return a report of the stored blocks, whose depth in the prompt the first count carries."""
    update = StateUpdate(
        tenant_id=TENANT, model_id=MODEL, replica_id=engine_name(engine), hash_scheme=HASH_SCHEME
    )
    counts = [TRACE_BLOCK_TOKENS] * len(outcome.stored)
    counts[0] += outcome.hit_blocks * TRACE_BLOCK_TOKENS
    update.add_chain(outcome.stored, counts)
    update.close()
    return update
