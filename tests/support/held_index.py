"""The least an index does with a producer's operations, to see what it would answer."""

from collections.abc import Iterable

from inferencecache.events import Clear, Delivery, Evict, Operation, StoreRun
from inferencecache.types import CacheTier

Held = dict[tuple[str, int], tuple[CacheTier, int]]


class HeldIndex:
    """Keys of one replica with tier and token count, as a server would hold them.

    As at the server, an eviction in the base partition takes the key from every adapter.
    """

    def __init__(self, block_tokens: int = 16) -> None:
        self.held: Held = {}
        self.clears = 0
        self._block_tokens = block_tokens

    def apply(self, operations: Iterable[Operation]) -> None:
        """Carry out operations directly."""
        for operation in operations:
            if isinstance(operation, StoreRun):
                for position, key in enumerate(operation.keys):
                    count = operation.first_token_count + position * self._block_tokens
                    self.held[operation.adapter_id, key] = (operation.tier, count)
            elif isinstance(operation, Evict):
                for key in operation.keys:
                    self._evict(operation.adapter_id, key)
            else:
                assert isinstance(operation, Clear)
                self._clear()

    def deliver(self, delivery: Delivery | None) -> None:
        """Carry out a delivery in its documented order."""
        if delivery is None:
            return
        if delivery.has_clear:
            self._clear()
        for eviction in delivery.evictions:
            self._evict(eviction.adapter_id, int.from_bytes(eviction.block_hash, "big"))
        for update in delivery.updates(1_000):
            for entry in update:
                total = 0
                counts = entry.block_token_counts()
                for block_hash, count in zip(entry.block_hashes, counts, strict=True):
                    total += count
                    key = int.from_bytes(block_hash, "big")
                    self.held[entry.adapter_id, key] = (entry.tier, total)

    def tiers(self) -> dict[tuple[str, int], CacheTier]:
        """Return the held keys with their tiers."""
        return {name: tier for name, (tier, _) in self.held.items()}

    def _evict(self, adapter_id: str, key: int) -> None:
        for name in [name for name in self.held if name[1] == key]:
            if adapter_id in {"", name[0]}:
                del self.held[name]

    def _clear(self) -> None:
        self.clears += 1
        self.held.clear()
