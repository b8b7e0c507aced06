"""How many blocks of each match lie in which tier, put together from the pieces of a chain."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from inferencecache.types import CacheTier, Candidate

_OWN: Final = CacheTier.T1.value


class InTiers:
    """Asks only of those who hold something outside of their own cache.

    Args:
        candidates: What was matched.

    Attributes:
        at: How many blocks of the chain were looked at.
    """

    __slots__ = ("_blocks", "_found", "_until", "at")

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self._blocks = {
            replica_id: blocks for replica_id, _, _, tier, blocks in candidates if tier != _OWN
        }
        self._until = max(self._blocks.values(), default=0)
        self._found: dict[str, dict[int, int]] = {}
        self.at = 0

    @property
    def are_asked(self) -> bool:
        """Whether there are blocks that are to be looked at."""
        return self.at < self._until

    def add(self, found: Mapping[str, Mapping[int, int]], blocks: int) -> None:
        """Take in what was found in the next *blocks* of the chain.

        Complexity: O(replicas that are asked for).
        """
        for replica_id, until in self._blocks.items():
            if until > self.at:
                tiers = self._found.setdefault(replica_id, {})
                for tier, held in found.get(replica_id, {}).items():
                    tiers[tier] = tiers.get(tier, 0) + held
        self.at += blocks

    def several(self) -> Iterator[tuple[str, tuple[tuple[int, int], ...]]]:
        """Yield replicas with blocks in several tiers: how many in which, the coldest last."""
        for replica_id, tiers in self._found.items():
            if len(tiers) > 1:
                yield replica_id, tuple(sorted(tiers.items()))
