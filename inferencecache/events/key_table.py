"""How many engine blocks speak for each key, and at which tier.

Several engine blocks can have one key: the fingerprint knows tokens only, while engines also hash
groups, look-ahead tokens or positions. A key is held as long as one of them is. The count of T1
holders is in the low half of an integer and that of T2 holders in the high half, so that the usual
key, held once at T1, costs no object.
"""

from collections.abc import Iterable
from typing import Final

from inferencecache.events.mediums import GPU_TIER, HOST_TIER, NOWHERE
from inferencecache.events.shards import SHARD_MASK, Shards, filled, new_shards
from inferencecache.types import CacheTier

T1_HOLDER: Final = 1
T2_HOLDER: Final = 1 << 32
T1_MASK: Final = T2_HOLDER - 1


def _weight(tier: CacheTier) -> int:
    """Return what a holder at *tier* adds; by identity, for hashing an enum takes long."""
    if tier is GPU_TIER:
        return T1_HOLDER
    return T2_HOLDER if tier is HOST_TIER else 0


def best_tier(holders: int) -> CacheTier:
    """Return the best tier that packed *holders* give; ``NOWHERE`` without any."""
    if holders & T1_MASK:
        return GPU_TIER
    return HOST_TIER if holders else NOWHERE


class KeyTable:
    """Holders of every key of one replica, by adapter.

    Attributes:
        t2_total: Keys whose best tier is T2.
    """

    __slots__ = ("_partitions", "t2_total")

    def __init__(self) -> None:
        self.t2_total = 0
        self._partitions: dict[str, list[dict[int, int]]] = {}

    def partition(self, adapter_id: str) -> list[dict[int, int]]:
        """Return the live mappings from key to packed holders of one adapter, see ``shards``.

        Whoever changes them keeps :attr:`t2_total` right.
        """
        found = self._partitions.get(adapter_id)
        if found is None:
            found = self._partitions[adapter_id] = new_shards()
        return found

    def has_room_for(self, adapter_id: str, adapters_max: int) -> bool:
        """Tell whether an adapter has keys or may have; those that have none any more go.

        Nobody may hold on to a partition meanwhile.
        """
        if adapter_id in self._partitions or len(self._partitions) < adapters_max:
            return True
        self._partitions = {
            name: shards for name, shards in self._partitions.items() if any(shards)
        }
        return len(self._partitions) < adapters_max

    def add(self, adapter_id: str, keys: Iterable[int]) -> bool:
        """Let each key have one holder more at T1; True if none was held before."""
        partition, is_fresh = self.partition(adapter_id), True
        for key in keys:
            holders = partition[key & SHARD_MASK]
            if key in holders:
                is_fresh = False
                self.move(adapter_id, key, NOWHERE, GPU_TIER)
            else:
                holders[key] = T1_HOLDER
        return is_fresh

    def move(
        self, adapter_id: str, key: int, before: CacheTier, after: CacheTier
    ) -> tuple[CacheTier, CacheTier]:
        """Let one holder go from tier *before* to *after*; return the key's best tiers."""
        partition = self.partition(adapter_id)[key & SHARD_MASK]
        old = partition.get(key, 0)
        if old == T1_HOLDER and before is GPU_TIER and after is NOWHERE:
            del partition[key]  # an eviction, as most calls are
            return GPU_TIER, NOWHERE
        new = old - _weight(before) + _weight(after)
        assert new >= 0, "a holder left that had never come"  # noqa: S101 - our own invariant
        if new:
            partition[key] = new
        else:
            partition.pop(key, None)
        was, now = best_tier(old), best_tier(new)
        self.t2_total += (now is HOST_TIER) - (was is HOST_TIER)
        return was, now

    def tier(self, adapter_id: str, key: int) -> CacheTier:
        """Return the best tier of *key*; ``NOWHERE`` if nobody holds it."""
        partition = self._partitions.get(adapter_id)
        return best_tier(partition[key & SHARD_MASK].get(key, 0)) if partition else NOWHERE

    def other_adapters(self, adapter_id: str, key: int) -> list[str]:
        """Return the other adapters under which *key* is held."""
        if len(self._partitions) == 1:
            return []
        return [
            other
            for other, partition in self._partitions.items()
            if other != adapter_id and key in partition[key & SHARD_MASK]
        ]

    def held(self) -> dict[tuple[str, int], CacheTier]:
        """Return every held key with its best tier, for comparison; linear in keys."""
        return {
            (adapter_id, key): best_tier(holders)
            for adapter_id, partition in self._partitions.items()
            for shard in partition
            for key, holders in shard.items()
        }

    def __len__(self) -> int:
        return sum(len(shard) for partition in self._partitions.values() for shard in partition)

    def detach(self) -> Shards:
        """Forget everything at once and return it, for the caller to take apart in slices."""
        gone = [shard for partition in self._partitions.values() for shard in filled(partition)]
        self._partitions = {}
        self.t2_total = 0
        return gone
