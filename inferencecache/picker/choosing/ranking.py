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
        counts, turns = self._in_flight.counts, self._turns
        loads: list[tuple[float, int, str, EndpointView]] = []
        for view in endpoints:
            name, endpoint = view.candidate.name, view.candidate.endpoint
            load = counts.get(name, 0) / (1.0 if endpoint is None else endpoint.weight)
            loads.append((load, turns.get(name, 0), name, view))
        least = nsmallest(_ORDERED_MAX, loads)
        order = tuple([Scored(view, 0.0 - load) for load, _, _, view in least])
        return Ranking(profile="", order=order, scored=tuple(endpoints))

    def chosen(self, candidate: Candidate) -> None:
        """Give *candidate* its turn."""
        self._turn += 1
        self._turns[candidate.name] = self._turn

    def retain(self, names: AbstractSet[str]) -> None:
        """Forget whose turn it was, of all but *names*."""
        self._turns = {name: turn for name, turn in self._turns.items() if name in names}
