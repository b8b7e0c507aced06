"""Place the stores that waited for a block, once it is placed.

One block may have a whole cache waiting for it, so this comes in steps.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from inferencecache.events.mapper_counters import MapperCounters
from inferencecache.events.messages import BlockRemoved, BlockStored
from inferencecache.events.orphans import Orphans

_STEP_BLOCKS: Final = 256


def adopt(
    orphans: Orphans,
    parent: tuple[int, BlockStored],
    place: Callable[[BlockStored], bool],
    counters: MapperCounters,
) -> Iterator[list[BlockRemoved]]:
    """Place every waiting store that *parent* makes placeable; yield after each step.

    Removals come last: a block that left after its child was announced still is the child's place.
    What is yielded is to be removed then; it is empty while there is something left to place.

    Args:
        orphans: Who waits.
        parent: A rank and the store of it that was just placed.
        place: Places a store; False if that was refused.
        counters: What happens is counted here.

    Complexity:
        Linear in the blocks placed, for none of them waits again; about :data:`_STEP_BLOCKS` of
        them a step, or one store if it has more.
    """
    rank, first = parent
    placed, removals, spent = deque([first]), list[BlockRemoved](), 0
    while placed:
        done = placed.popleft()
        for engine_hash in done.block_hashes:
            while (orphan := orphans.pop_child(rank, done.group_idx, engine_hash)) is not None:
                blocks = len(orphan.event.block_hashes)
                if place(orphan.event):
                    counters.orphans_resolved += blocks
                    removals.extend(orphan.removals)
                    placed.append(orphan.event)
                else:
                    counters.orphans_dropped += blocks
                spent += blocks
                if spent >= _STEP_BLOCKS:
                    yield []
                    spent = 0
    for start in range(0, len(removals), _STEP_BLOCKS):
        yield removals[start : start + _STEP_BLOCKS]
