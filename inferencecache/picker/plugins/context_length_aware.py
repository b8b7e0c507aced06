"""Prefer, or keep only, the endpoints that are meant for prompts of the request's length.

A label says for which lengths an endpoint is meant: ``0-2048``, or several ranges with commas.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from inferencecache.picker.pipeline import EndpointView, Request
from inferencecache.picker.pipeline.keys import PROMPT_TOKENS
from inferencecache.picker.pipeline.parameters import PluginParameters
from inferencecache.picker.pipeline.registry import PluginServices, PluginType

_LABEL: Final = "llm-d.ai/context-length-range"
_RANGE: Final = re.compile(r"\s*(\d{1,12})\s*-\s*(\d{1,12})\s*")

_WITHIN_FROM: Final = 0.3
_NO_LABEL: Final = 0.5
_WIDE_TOKENS: Final = 32_768
"""A range of this width has lost half of what a narrow one gets above 0.3."""
_FAR_TOKENS: Final = 8_192
"""An endpoint whose range is this far away has lost half of its 0.3."""


class ContextLengthParameters(PluginParameters, frozen=True):
    """Parameters.

    Attributes:
        label: The label to read.
        enable_filtering: Whether endpoints that are meant for other lengths are left out.
    """

    label: Annotated[str, Meta(min_length=1)] = _LABEL
    enable_filtering: bool = False


class TokenRange(NamedTuple):
    """A range of lengths.

    Attributes:
        least: The shortest.
        most: The longest.
    """

    least: int
    most: int


class ContextLengthAware:
    """A filter and a scorer.

    An endpoint that is meant for the length gets more than 0.3, the more the narrower its range;
    one that is not gets less, the less the further away its range is; one without a label gets 0.5
    and stays.

    Args:
        parameters: See there.
    """

    may_consume = (PROMPT_TOKENS,)

    def __init__(self, parameters: ContextLengthParameters) -> None:
        self._label = parameters.label
        self._is_filter = parameters.enable_filtering

    def filter(self, request: Request, endpoints: Sequence[EndpointView]) -> Sequence[EndpointView]:
        """Return those of *endpoints* that may take the request."""
        if not self._is_filter:
            return endpoints
        tokens = _tokens(request)
        return [endpoint for endpoint in endpoints if self._score(endpoint, tokens) > _WITHIN_FROM]

    def score(self, request: Request, endpoints: Sequence[EndpointView]) -> Sequence[float]:
        """Return the points of *endpoints*."""
        tokens = _tokens(request)
        return [self._score(endpoint, tokens) for endpoint in endpoints]

    def _score(self, endpoint: EndpointView, tokens: int) -> float:
        ranges = read_ranges(endpoint.labels.get(self._label, ""))
        if not ranges:
            return _NO_LABEL
        return max(_range_score(each, tokens) for each in ranges)


def read_ranges(text: str) -> list[TokenRange]:
    """Return the ranges that a label names; none if it has another form.

    >>> read_ranges("0-2048,8192-16384")
    [TokenRange(least=0, most=2048), TokenRange(least=8192, most=16384)]
    """
    found = [_RANGE.fullmatch(part) for part in text.split(",")]
    ranges = [TokenRange(int(match[1]), int(match[2])) for match in found if match]
    is_right = len(ranges) == len(found) and all(each.least <= each.most for each in ranges)
    return ranges if is_right else []


def _range_score(allowed: TokenRange, tokens: int) -> float:
    if allowed.least <= tokens <= allowed.most:
        width = allowed.most - allowed.least
        return _WITHIN_FROM + (1.0 - _WITHIN_FROM) * _WIDE_TOKENS / (_WIDE_TOKENS + width)
    distance = max(allowed.least - tokens, tokens - allowed.most)
    return _WITHIN_FROM * _FAR_TOKENS / (_FAR_TOKENS + distance)


def _tokens(request: Request) -> int:
    counted = request.attributes.get(PROMPT_TOKENS)
    return request.prompt_tokens if counted is None else counted.count


def _make(parameters: ContextLengthParameters, _services: PluginServices) -> ContextLengthAware:
    return ContextLengthAware(parameters)


CONTEXT_LENGTH_AWARE: Final = PluginType(
    name="context-length-aware", parameters=ContextLengthParameters, make=_make
)
