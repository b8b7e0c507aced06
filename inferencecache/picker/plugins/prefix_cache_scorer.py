"""Score endpoints by how much of the prompt they have in their caches."""

from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta

from inferencecache.picker.pipeline import EndpointView, NoSignalError, Request
from inferencecache.picker.pipeline.keys import PREFIX_MATCH, PrefixMatch
from inferencecache.picker.pipeline.parameters import PluginParameters
from inferencecache.picker.pipeline.registry import PluginServices, PluginType

_LONG_MATCH_TOKENS: Final = 8_192
"""A match of this many tokens is as long as can be."""


class PrefixCacheParameters(PluginParameters, frozen=True):
    """Parameters.

    Attributes:
        match_length_weight: What the length of the match counts, beside its share of the prompt.
    """

    match_length_weight: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.0


class PrefixCacheScorer:
    """``w * min(1, matched tokens / 8192) ** 2 + (1 - w) * matched blocks / all blocks``.

    An endpoint of which nothing is known gets 0.

    Args:
        parameters: See there.
    """

    may_consume = (PREFIX_MATCH,)

    def __init__(self, parameters: PrefixCacheParameters) -> None:
        self._length_weight = parameters.match_length_weight

    def score(self, _request: Request, endpoints: Sequence[EndpointView]) -> Sequence[float]:
        """Return the points of *endpoints*.

        Raises:
            NoSignalError: Nothing is known of any of them.
        """
        matches = [endpoint.attributes.get(PREFIX_MATCH) for endpoint in endpoints]
        if all(match is None for match in matches):
            raise NoSignalError("prefix matches")
        return [0.0 if match is None else self._score(match) for match in matches]

    def _score(self, match: PrefixMatch) -> float:
        share = match.matched_blocks / match.total_blocks if match.total_blocks else 0.0
        length = min(1.0, match.matched_tokens / _LONG_MATCH_TOKENS) ** 2
        return self._length_weight * length + (1.0 - self._length_weight) * share


def _make(parameters: PrefixCacheParameters, _services: PluginServices) -> PrefixCacheScorer:
    return PrefixCacheScorer(parameters)


PREFIX_CACHE_SCORER: Final = PluginType(
    name="prefix-cache-scorer", parameters=PrefixCacheParameters, make=_make
)

PRECISE_PREFIX_CACHE_SCORER: Final = PluginType(
    name="precise-prefix-cache-scorer", parameters=PrefixCacheParameters, make=_make
)
"""The older name, for matches that engines have told of; who told is the picker's matter."""
