"""Keep the garbage collector from stopping the event loop.

A full collection looks at every object and every slot of every dict: at a million blocks it stops
the loop for longer than a lookup may take, again and again while reports come in, and finds next to
nothing, because what the index drops is free at once. So the young generations are collected as
ever, which is quick and catches what libraries leave behind, and everything only now and then.

Source: docs/adr/0011-garbage-collection.md.
"""

import asyncio
import gc
from typing import Final

from inferencecache.clock import NS_PER_S

_NEVER: Final = 2**31 - 1
"""Collections of the middle generation before the oldest is due; the most the library takes."""

_MIDDLE_OFTEN: Final = 1
"""Collections of the youngest generation before the middle one is due. A dictionary of blocks may
have become big before its first one, so each collection that still looks at it must come soon."""


def calm_collector() -> None:
    """Stop full collections, and exempt what there is now from those asked for.

    To be called once everything that stays has been made.
    """
    gc.collect()
    gc.freeze()
    young, _, _ = gc.get_threshold()
    gc.set_threshold(young, _MIDDLE_OFTEN, _NEVER)


async def collect_rarely(interval_ns: int) -> None:
    """Collect everything once per interval, until cancelled.

    Args:
        interval_ns: Time between two full collections, in nanoseconds; 0 for never.
    """
    while interval_ns:
        await asyncio.sleep(interval_ns / NS_PER_S)
        gc.collect()
