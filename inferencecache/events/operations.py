"""What a producer wants the index to change, in order; free of any wire format.

Structs for the reason given in ``messages``: with one-block events, one is built per block.
"""

import msgspec

from inferencecache.types import CacheTier


class StoreRun(msgspec.Struct, frozen=True, gc=False):
    """Keys that follow one another in a prompt and are held at one tier.

    Attributes:
        adapter_id: Partition; empty for the base model.
        tier: Where they are held.
        keys: Prefix hashes, 0 to 2**64 - 1, each the continuation of the one before.
        parent_key: Prefix hash before the first key; None at a prompt's start.
        first_token_count: Tokens from the prompt's start to the end of the first key's block.
        is_fresh: No key of the run was held before, so a removal may cancel it unsent.
    """

    adapter_id: str
    tier: CacheTier
    keys: list[int]
    parent_key: int | None
    first_token_count: int
    is_fresh: bool


class Evict(msgspec.Struct, frozen=True, kw_only=True):
    """Keys no longer held in one partition. In the base partition the index takes it for all."""

    adapter_id: str
    keys: list[int]


class Clear(msgspec.Struct, frozen=True):
    """Nothing of the replica is held any more."""


Operation = StoreRun | Evict | Clear


class Changes:
    """Builder of an ordered list of operations."""

    __slots__ = ("operations",)

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    def store(self, run: StoreRun) -> None:
        """Append *run*."""
        self.operations.append(run)

    def evict(self, adapter_id: str, key: int) -> None:
        """Append the eviction of *key*, joined to the one before if it is next to it."""
        last = self.operations[-1] if self.operations else None
        if isinstance(last, Evict) and last.adapter_id == adapter_id:
            last.keys.append(key)
        else:
            self.operations.append(Evict(adapter_id=adapter_id, keys=[key]))

    def take(self) -> list[Operation]:
        """Remove and return what was gathered."""
        taken, self.operations = self.operations, []
        return taken

    def clear(self) -> None:
        """Start over: what was gathered before a clear is of no use."""
        self.operations = [Clear()]
