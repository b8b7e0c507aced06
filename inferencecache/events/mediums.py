"""Where copies of a block lie, packed into one integer.

A *holding* has a lane of 8 bits per medium; a lane counts copies. Lane 0 is the GPU, so the usual
block, one copy on the GPU, is the integer 1, which costs no memory of its own::

    lane        2 CPU_PINNED   1 CPU   0 GPU
    holding     00000001       00000000 00000010     two copies on the GPU, one on the host

A copy on the GPU is worth tier T1, any other T2. Lanes of different mediums never mix, so a
removal from one medium leaves the copies in the others alone.
"""

from typing import Final

from inferencecache.types import CacheTier

GPU_LANE: Final = 0
UNKNOWN_LANE: Final = 10
INFERRED_LANE: Final = 11
"""A copy that is assumed, not announced: the engine offloads without saying so."""

_LANES: Final = {
    "": GPU_LANE,
    "GPU": GPU_LANE,
    "CPU": 1,
    "CPU_PINNED": 2,
    "DISK": 3,
    "STORAGE": 4,
    "FS": 5,
    "OBJ": 6,
    "EXTERNAL": 7,
    "SHARED_STORAGE": 8,
    "OBJECT_STORE": 9,
}
_LANE_BITS: Final = 8
_LANE_MASK: Final = 0xFF
_LANES_TOTAL: Final = 12

GPU_TIER: Final = CacheTier.T1
HOST_TIER: Final = CacheTier.T2
NOWHERE: Final = CacheTier.UNSPECIFIED
"""What lanes are worth. Names of our own, for an attribute of an enum takes ten times as long."""


def lane_of(medium: str) -> int:
    """Return the lane of a medium as engines name it; case does not matter."""
    lane = _LANES.get(medium)
    return lane if lane is not None else _LANES.get(medium.upper(), UNKNOWN_LANE)


def one_copy(lane: int) -> int:
    """Return the holding of a single copy."""
    return 1 << lane * _LANE_BITS


def copies_in(holding: int, lane: int) -> int:
    """Return how many copies *lane* counts."""
    return holding >> lane * _LANE_BITS & _LANE_MASK


def with_copy(holding: int, lane: int, copies_max: int) -> int:
    """Return *holding* with one copy more, or unchanged when the lane counts *copies_max*."""
    return holding + one_copy(lane) if copies_in(holding, lane) < copies_max else holding


def without_lane(holding: int, lane: int) -> int:
    """Return *holding* without any copy in *lane*."""
    return holding & ~(_LANE_MASK << lane * _LANE_BITS)


def tier_of(holding: int) -> CacheTier:
    """Return the best tier of a holding; ``NOWHERE`` for none."""
    if holding & _LANE_MASK:
        return GPU_TIER
    return HOST_TIER if holding else NOWHERE


def is_saturated(holding: int, copies_max: int) -> bool:
    """Tell whether a lane has stopped counting, so that its last removal may go unnoticed."""
    return any(copies_in(holding, lane) >= copies_max for lane in range(_LANES_TOTAL))


def is_inferred_only(holding: int) -> bool:
    """Tell whether nothing but an assumption speaks for the block."""
    return bool(holding) and not without_lane(holding, INFERRED_LANE)
