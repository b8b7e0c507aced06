"""When the index has last heard of each replica."""

from collections.abc import Mapping


class Sightings:
    """Remembers replicas by their id alone, whatever tenant, model or engine they report for.

    Args:
        replicas_max: How many; beyond, whoever was heard of first is forgotten.
    """

    def __init__(self, replicas_max: int) -> None:
        self._replicas_max = replicas_max
        self._seen_ns: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._seen_ns)

    @property
    def seen_ns(self) -> Mapping[str, int]:
        """Monotonic time of the last sign of life of each replica."""
        return self._seen_ns

    def saw(self, replica_id: str, now_ns: int) -> None:
        """Note a sign of life.

        Complexity: O(1).
        """
        seen_ns = self._seen_ns
        if len(seen_ns) >= self._replicas_max and replica_id not in seen_ns:
            del seen_ns[next(iter(seen_ns))]
        seen_ns[replica_id] = now_ns
