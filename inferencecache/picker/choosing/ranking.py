"""Put the candidates of a tier in order."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from heapq import nsmallest
from typing import Final, Protocol

from inferencecache.picker.decisions import InFlight
from inferencecache.picker.fleet import Candidate
from inferencecache.picker.pipeline import EndpointView, Ranking, Scored

_ORDERED_MAX: Final = 16
"""How many of the best are put in order; nobody asks for more."""


class Ranker(Protocol):
    """Puts endpoints in order, where no scheduling profile does."""

    @property
    def name(self) -> str:
        """What the reason of a Pick calls it."""
        ...

    def rank(self, endpoints: Sequence[EndpointView]) -> Ranking:
        """Return the best of *endpoints* first; at least one if there is one."""
        ...

    def chosen(self, candidate: Candidate) -> None:
        """Take note that a request goes to *candidate*."""
        ...


class LeastInFlight:
    """The one with the fewest requests in flight for its weight; of equals, the idlest.

    Args:
        in_flight: What each has to do.
    """

    name: Final = "in_flight"

    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight
        self._turns: dict[str, int] = {}
        self._turn = 0

    def rank(self, endpoints: Sequence[EndpointView]) -> Ranking:
        """Return the endpoints with the least to do; the score is what they have, negated."""
        scored = [Scored(endpoint, 0.0 - self._load(endpoint.candidate)) for endpoint in endpoints]
        order = nsmallest(_ORDERED_MAX, scored, key=self._place)
        return Ranking(profile="", order=tuple(order), scored=tuple(endpoints))

    def chosen(self, candidate: Candidate) -> None:
        """Give *candidate* its turn."""
        self._turn += 1
        self._turns[candidate.name] = self._turn

    def retain(self, names: AbstractSet[str]) -> None:
        """Forget whose turn it was, of all but *names*."""
        self._turns = {name: turn for name, turn in self._turns.items() if name in names}

    def _load(self, candidate: Candidate) -> float:
        endpoint = candidate.endpoint
        weight = 1.0 if endpoint is None else endpoint.weight
        return self._in_flight.of(candidate.name) / weight

    def _place(self, scored: Scored) -> tuple[float, int, str]:
        name = scored.endpoint.candidate.name
        return -scored.score, self._turns.get(name, 0), name
