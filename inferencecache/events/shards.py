"""Large tables in parts, so that none of them grows in one long step.

A dictionary that is full is copied as a whole: some 60 ns per entry, 20 ms at 350,000 and four
times that at 1.4 million. Parts are each full at a moment of their own, and each is copied quickly.
"""

from typing import Any, Final

SHARD_MASK: Final = 31
"""A number is in the part of its lowest bits; hashes are as good as random there."""

Shards = list[dict[int, Any]]


def new_shards() -> Shards:
    """Return the parts of an empty table."""
    return [{} for _ in range(SHARD_MASK + 1)]


def filled(shards: Shards) -> Shards:
    """Return the parts that hold anything."""
    return [shard for shard in shards if shard]
