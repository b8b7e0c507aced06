"""The prefix signal of a simulated picker: the one that a server has, over an index in process."""

from collections.abc import Sequence

from inferencecache.app.simulate_index import SimulatedIndex
from inferencecache.app.simulate_prompts import KnownPrompts
from inferencecache.clock import Clock
from inferencecache.picker.prefix.audit import CacheAudit
from inferencecache.picker.prefix.cache_signal import CacheSignal, CacheSignalParts
from inferencecache.picker.prefix.picked_blocks import PickedBlocks
from inferencecache.picker.prefix.placed_prompt import LearningParts
from inferencecache.picker.prefix.prompt_at import ClaimParts
from inferencecache.picker.prefix.set_standing import IndexKind, SetStanding
from inferencecache.service.index_matches import IndexMatches
from inferencecache.settings.lookup import LookupSettings
from inferencecache.settings.picker_prefix import PickerPrefixSettings
from inferencecache.simulation import FleetRequest
from inferencecache.transport.picker_index import IndexHere


def simulated_signal(
    requests: Sequence[FleetRequest], index: SimulatedIndex, clock: Clock
) -> CacheSignal:
    """Return the signal of a picker that places *requests*.

    Args:
        requests: By number.
        index: What engines have told.
        clock: Virtual time.
    """
    settings = PickerPrefixSettings()
    lookup = LookupSettings()
    matches = IndexMatches(index.plane.index, clock, lookup)
    audit, blocks = CacheAudit(settings), PickedBlocks(settings)
    kind = IndexKind(is_there=True, is_named=True, hears_replicas=True)
    return CacheSignal(
        CacheSignalParts(
            settings=settings,
            clock=clock,
            reader=KnownPrompts(requests),
            index=IndexHere(matches, clock, lookup.waiting_max),
            standing=SetStanding(kind, index.sightings, audit),
            claims=ClaimParts(
                settings=settings, sightings=index.sightings, blocks=blocks, audit=audit
            ),
            learning=LearningParts(settings=settings, clock=clock, blocks=blocks, audit=audit),
        )
    )
