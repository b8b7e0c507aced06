"""Where requests have failed a moment ago, so that another attempt is led elsewhere.

The contract has no word for "not there again", but whoever tries again does so under the same name.
That name may be anything, even the same for all requests of a caller; so what is remembered of it
is short, bounded, and leads nobody but by preference.
"""

from collections import OrderedDict
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

_NOWHERE: Final = frozenset[str]()


class RequestName(NamedTuple):
    """Under which a caller asks, and asks again.

    Attributes:
        tenant: Whose request it is.
        client_request_id: Its caller's name for it; under an empty one nothing is remembered.
    """

    tenant: str
    client_request_id: str


class FailedPlaces:
    """The last failures of requests, each for the same time.

    Args:
        failures_max: How many are remembered; beyond it the oldest is forgotten.
        kept_ns: For how long.
    """

    def __init__(self, failures_max: int, kept_ns: int) -> None:
        self._failures_max = failures_max
        self._kept_ns = kept_ns
        self._until_ns: OrderedDict[tuple[RequestName, str], int] = OrderedDict()
        self._places: dict[RequestName, dict[str, None]] = {}

    def __len__(self) -> int:
        """Return how many failures are remembered."""
        return len(self._until_ns)

    def failed(self, request: RequestName, place: str, now_ns: int) -> None:
        """Remember that *request* has failed at the candidate *place*.

        Complexity: constant, and one step per failure that is forgotten.
        """
        self.expire(now_ns)
        if not (request.client_request_id and self._failures_max and self._kept_ns):
            return
        key = (request, place)
        self._until_ns[key] = now_ns + self._kept_ns
        self._until_ns.move_to_end(key)
        self._places.setdefault(request, {})[place] = None
        if len(self._until_ns) > self._failures_max:
            self._forget_oldest()

    def worked(self, request: RequestName) -> None:
        """Forget where *request* has failed: it was answered to its end.

        Complexity: O(places where it has failed).
        """
        for place in self._places.pop(request, ()):
            del self._until_ns[request, place]

    def of(self, request: RequestName, now_ns: int) -> AbstractSet[str]:
        """Return the candidates at which *request* has failed, by name; good until the next call.

        Complexity: constant, and one step per failure that is forgotten.
        """
        self.expire(now_ns)
        places = self._places.get(request)
        return _NOWHERE if places is None else places.keys()

    def expire(self, now_ns: int) -> None:
        """Forget failures whose time is over; they are in its order."""
        while self._until_ns and next(iter(self._until_ns.values())) <= now_ns:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        (request, place), _ = self._until_ns.popitem(last=False)
        places = self._places[request]
        del places[place]
        if not places:
            del self._places[request]
