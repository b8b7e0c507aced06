"""Ids that were used up, remembered for a while so that their second use is told from a guess."""

from collections import OrderedDict


class UsedIds:
    """A bounded memory of ids, oldest forgotten first.

    Args:
        count_max: Most ids.
        ttl_ns: How long each is remembered, in nanoseconds.
    """

    __slots__ = ("_count_max", "_forget_ns", "_ttl_ns")

    def __init__(self, count_max: int, ttl_ns: int) -> None:
        self._count_max = count_max
        self._ttl_ns = ttl_ns
        self._forget_ns: OrderedDict[int, int] = OrderedDict()

    def __contains__(self, used: object) -> bool:
        return used in self._forget_ns

    def __len__(self) -> int:
        return len(self._forget_ns)

    def add(self, used: int, now_ns: int) -> None:
        """Remember *used* from now on."""
        if len(self._forget_ns) >= self._count_max:
            self._forget_ns.popitem(last=False)
        self._forget_ns[used] = now_ns + self._ttl_ns

    def expire(self, now_ns: int) -> None:
        """Forget what is old enough."""
        while self._forget_ns:
            oldest = next(iter(self._forget_ns))
            if self._forget_ns[oldest] > now_ns:
                return
            del self._forget_ns[oldest]
