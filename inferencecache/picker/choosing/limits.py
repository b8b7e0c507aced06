"""What tenants have asked for under the limits of rules.

Rules of this file: a rate counts over any minute, by whole seconds, so that it is never exceeded
and may be reached a second late; one whose minute is over is forgotten; a tenant beyond the cap of
the table is counted anew.
"""

from collections import OrderedDict, deque
from typing import Final, NamedTuple

from inferencecache.clock import NS_PER_S
from inferencecache.picker.fleet import ObjectName
from inferencecache.picker.qos import QosClass

_MINUTE_S: Final = 60


class LimitKey(NamedTuple):
    """Whose requests one limit counts.

    A rule is known by what it is about and not by its place among others, so that counts stay its
    own while a policy is edited. Of two that are about the same only the first is ever asked about
    a tenant.

    Attributes:
        policy: Of which policy.
        models: For which models, None for all.
        qos_classes: Of which classes, None for all.
        tenant: Of which tenant.
    """

    policy: ObjectName
    models: frozenset[str] | None
    qos_classes: frozenset[QosClass] | None
    tenant: str


class Limits:
    """Requests by limit.

    Args:
        keys_max: Most tenants and limits whose rates are remembered.
    """

    def __init__(self, keys_max: int) -> None:
        self._keys_max = keys_max
        self._in_flight: dict[LimitKey, int] = {}
        self._rates: OrderedDict[LimitKey, deque[list[int]]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many limits have requests in flight."""
        return len(self._in_flight)

    @property
    def rates_remembered(self) -> int:
        """How many limits have had requests in a minute that is not known to be over."""
        return len(self._rates)

    def in_flight(self, key: LimitKey) -> int:
        """Return the requests that were begun and not ended."""
        return self._in_flight.get(key, 0)

    def in_last_minute(self, key: LimitKey, now_ns: int) -> int:
        """Return the requests of the last sixty seconds, and of the part of one before them."""
        self.forget(now_ns)
        seconds = self._rates.get(key)
        if seconds is None:
            return 0
        first = _first_second(now_ns)
        while seconds and seconds[0][0] < first:
            seconds.popleft()
        return sum(count for _, count in seconds)

    def begin(self, key: LimitKey, now_ns: int) -> None:
        """Count a request; whoever begins it ends it."""
        self.forget(now_ns)
        self._in_flight[key] = self.in_flight(key) + 1
        seconds = self._rates.setdefault(key, deque())
        self._rates.move_to_end(key)
        if len(self._rates) > self._keys_max:
            self._rates.popitem(last=False)
        second = now_ns // NS_PER_S
        if seconds and seconds[-1][0] == second:
            seconds[-1][1] += 1
        else:
            seconds.append([second, 1])
            if len(seconds) > _MINUTE_S + 1:
                seconds.popleft()

    def forget(self, now_ns: int) -> None:
        """Let go of rates that no request has added to for a minute.

        Complexity: constant per request, since the longest idle come first.
        """
        first = _first_second(now_ns)
        while self._rates:
            key = next(iter(self._rates))
            seconds = self._rates[key]
            if seconds and seconds[-1][0] >= first:
                return
            del self._rates[key]

    def end(self, key: LimitKey) -> None:
        """Count a request no longer as in flight."""
        left = self.in_flight(key) - 1
        if left > 0:
            self._in_flight[key] = left
        else:
            self._in_flight.pop(key, None)


def _first_second(now_ns: int) -> int:
    """Return the first second that still counts."""
    return now_ns // NS_PER_S - _MINUTE_S
