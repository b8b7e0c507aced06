"""Score endpoints by the tokens that they have in flight and would have with this request."""

from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta

from inferencecache.picker.pipeline import EndpointView, Request
from inferencecache.picker.pipeline.keys import INFLIGHT_LOAD, PREFIX_MATCH, PROMPT_TOKENS
from inferencecache.picker.pipeline.parameters import PluginParameters
from inferencecache.picker.pipeline.registry import PluginServices, PluginType

_THRESHOLD_TOKENS: Final = 4_194_304
"""128 requests of 32 Ki tokens."""


class TokenLoadParameters(PluginParameters, frozen=True):
    """Parameters.

    Attributes:
        queue_threshold_tokens: From where on an endpoint gets 0.
    """

    queue_threshold_tokens: Annotated[int, Meta(ge=1)] = _THRESHOLD_TOKENS


class TokenLoadScorer:
    """``1 - min(1, tokens / threshold)``.

    Args:
        parameters: See there.
    """

    consumes = (INFLIGHT_LOAD,)
    may_consume = (PREFIX_MATCH, PROMPT_TOKENS)

    def __init__(self, parameters: TokenLoadParameters) -> None:
        self._threshold = parameters.queue_threshold_tokens

    def score(self, request: Request, endpoints: Sequence[EndpointView]) -> Sequence[float]:
        """Return the points of *endpoints*."""
        counted = request.attributes.get(PROMPT_TOKENS)
        prompt_tokens = request.prompt_tokens if counted is None else counted.count
        threshold, scores = self._threshold, []
        for endpoint in endpoints:
            attributes, tokens = endpoint.attributes, prompt_tokens
            match = attributes.get(PREFIX_MATCH)
            if match is not None:
                tokens = max(tokens - match.matched_tokens, 0)
            load = attributes.get(INFLIGHT_LOAD)
            if load is not None:
                tokens += load.prompt_tokens + load.output_tokens
            scores.append(1.0 - tokens / threshold if tokens < threshold else 0.0)
        return scores


def _make(parameters: TokenLoadParameters, _services: PluginServices) -> TokenLoadScorer:
    return TokenLoadScorer(parameters)


TOKEN_LOAD_SCORER: Final = PluginType(
    name="token-load-scorer", parameters=TokenLoadParameters, make=_make
)
