"""Spread cold requests: the endpoint that got one longest ago comes first."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta

from inferencecache.picker.pipeline import EndpointView, Request, SchedulingResult
from inferencecache.picker.pipeline.keys import PREFIX_MATCH
from inferencecache.picker.pipeline.parameters import PluginParameters
from inferencecache.picker.pipeline.registry import PluginServices, PluginType

_LRU_SIZE: Final = 1_024
_WARM_SCORE: Final = 0.5


class NoHitLruParameters(PluginParameters, frozen=True):
    """Parameters.

    Attributes:
        lru_size: Endpoints that are remembered.
    """

    lru_size: Annotated[int, Meta(ge=1, le=1_000_000)] = _LRU_SIZE


class NoHitLruScorer:
    """A warm request: 0.5 for all. A cold one: from 1 for whoever waits longest down to 0.

    Endpoints that never got a cold request come before all others, in their own order.

    Args:
        parameters: See there.
    """

    may_consume = (PREFIX_MATCH,)

    def __init__(self, parameters: NoHitLruParameters) -> None:
        self._size = parameters.lru_size
        self._last_cold: OrderedDict[str, None] = OrderedDict()

    def score(self, _request: Request, endpoints: Sequence[EndpointView]) -> Sequence[float]:
        """Return the points of *endpoints*."""
        if _is_warm(endpoints):
            return [_WARM_SCORE] * len(endpoints)
        turns = {name: turn for turn, name in enumerate(self._last_cold)}
        order = sorted(
            range(len(endpoints)), key=lambda place: turns.get(endpoints[place].name, -1)
        )
        last = max(len(endpoints) - 1, 1)
        scores = [0.0] * len(endpoints)
        for rank, place in enumerate(order):
            scores[place] = 1.0 - rank / last
        return scores

    def pre_request(self, _request: Request, result: SchedulingResult) -> None:
        """Remember who got a cold request."""
        if _is_warm(result.ranking.scored):
            return
        name = result.endpoint.name
        self._last_cold[name] = None
        self._last_cold.move_to_end(name)
        if len(self._last_cold) > self._size:
            self._last_cold.popitem(last=False)


def _is_warm(endpoints: Sequence[EndpointView]) -> bool:
    """Return whether somebody has part of the prompt."""
    matches = (endpoint.attributes.get(PREFIX_MATCH) for endpoint in endpoints)
    return any(match is not None and match.matched_blocks > 0 for match in matches)


def _make(parameters: NoHitLruParameters, _services: PluginServices) -> NoHitLruScorer:
    return NoHitLruScorer(parameters)


NO_HIT_LRU_SCORER: Final = PluginType(
    name="no-hit-lru-scorer", parameters=NoHitLruParameters, make=_make
)
