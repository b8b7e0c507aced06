"""The prefix signal of a simulated picker: the one that a server has, over an index in process."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from inferencecache.app.simulate_index import SimulatedIndex
from inferencecache.app.simulate_prompts import KnownPrompts
from inferencecache.clock import Clock
from inferencecache.picker.prefix.knowledge import PrefixKnowledge, PrefixKnowledgeParts
from inferencecache.service.index_matches import IndexMatches
from inferencecache.settings.picker_prefix import PickerPrefixSettings
from inferencecache.simulation import FleetRequest
from inferencecache.transport.picker_index import IndexHere

_SLICE_BLOCKS: Final = 2**31
"""More than any prompt has: in virtual time nobody else waits for a long one to be matched."""


def simulated_knowledge(
    requests: Sequence[FleetRequest], index: SimulatedIndex, clock: Clock
) -> PrefixKnowledge:
    """Return what a picker that places *requests* knows of caches.

    Args:
        requests: By number.
        index: What engines have told.
        clock: Virtual time.
    """
    lookup = replace(index.plane.lookup_settings, match_slice_blocks=_SLICE_BLOCKS)
    matches = IndexMatches(index.plane.index, clock, lookup)
    return PrefixKnowledge(
        PrefixKnowledgeParts(
            settings=PickerPrefixSettings(),
            clock=clock,
            reader=KnownPrompts(requests),
            index=IndexHere(matches, clock, lookup.waiting_max),
            is_index_named=True,
            sightings=index.sightings,
            lacks_tokenizer=lambda _: False,
        )
    )
