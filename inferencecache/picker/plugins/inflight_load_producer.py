"""Count the tokens that each endpoint was given and has not finished.

Rules of this file: what a request adds when it is placed is what it takes away, in two parts: its
prompt with the first token, its answer with the end; whatever of the prompt is left at the end goes
then. A request has one end, so nothing stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Annotated, Final

from msgspec import Meta

from inferencecache.picker.pipeline import (
    EndpointView,
    Produced,
    Request,
    Response,
    SchedulingResult,
)
from inferencecache.picker.pipeline.keys import (
    INFLIGHT_LOAD,
    PREFIX_MATCH,
    PROMPT_TOKENS,
    InflightLoad,
)
from inferencecache.picker.pipeline.parameters import PluginParameters
from inferencecache.picker.pipeline.registry import PluginServices, PluginType


class InflightLoadParameters(PluginParameters, frozen=True):
    """Parameters.

    Attributes:
        output_ratio: Tokens of an answer that are expected per token of its prompt; 0 expects none.
    """

    output_ratio: Annotated[float, Meta(ge=0, le=1_000)] = 0.0


@dataclass(slots=True)
class _Share:
    """What one request still adds to the load of its endpoint."""

    prompt_tokens: int
    output_tokens: int


class InflightLoadProducer:
    """Says of each endpoint what it has in flight.

    Args:
        parameters: See there.
    """

    produces = (INFLIGHT_LOAD,)
    may_consume = (PREFIX_MATCH, PROMPT_TOKENS)

    def __init__(self, parameters: InflightLoadParameters) -> None:
        self._output_ratio = parameters.output_ratio
        self._loads: dict[str, InflightLoad] = {}
        self._shares: dict[int, _Share] = {}

    def __len__(self) -> int:
        """Return how many endpoints have something in flight."""
        return len(self._loads)

    async def produce(self, request: Request, endpoints: Sequence[EndpointView]) -> Produced:
        """Return the same as :meth:`produce_now`."""
        return self.produce_now(request, endpoints)

    def produce_now(self, _request: Request, endpoints: Sequence[EndpointView]) -> Produced:
        """Return what *endpoints* have in flight."""
        produced = Produced()
        load_of, name = self._loads.get, INFLIGHT_LOAD.name
        produced.about_endpoints = {
            endpoint: {name: load_of(endpoint.candidate.name, _IDLE)} for endpoint in endpoints
        }
        return produced

    def pre_request(self, request: Request, result: SchedulingResult) -> None:
        """Count a request that was placed."""
        counted = request.attributes.get(PROMPT_TOKENS)
        prompt_tokens = request.prompt_tokens if counted is None else counted.count
        match = result.endpoint.attributes.get(PREFIX_MATCH)
        share = _Share(
            prompt_tokens=max(prompt_tokens - (match.matched_tokens if match else 0), 0),
            output_tokens=ceil(prompt_tokens * self._output_ratio),
        )
        self._shares[request.key] = share
        self._add(result.endpoint, 1, share.prompt_tokens, share.output_tokens)

    def response_body(self, request: Request, response: Response, endpoint: EndpointView) -> None:
        """Take away what is done."""
        share = self._shares.get(request.key)
        if share is None:
            return
        prompt_tokens, share.prompt_tokens = share.prompt_tokens, 0
        if response.end_of_stream:
            del self._shares[request.key]
            self._add(endpoint, -1, -prompt_tokens, -share.output_tokens)
        elif prompt_tokens:
            self._add(endpoint, 0, -prompt_tokens, 0)

    def _add(
        self, endpoint: EndpointView, requests: int, prompt_tokens: int, output_tokens: int
    ) -> None:
        """Change the load of *endpoint*; one without requests takes no memory."""
        load = self._loads.get(endpoint.name, _IDLE)
        if load.requests + requests:
            self._loads[endpoint.name] = InflightLoad(
                requests=load.requests + requests,
                prompt_tokens=load.prompt_tokens + prompt_tokens,
                output_tokens=load.output_tokens + output_tokens,
            )
        else:
            del self._loads[endpoint.name]


_IDLE: Final = InflightLoad(requests=0, prompt_tokens=0)


def _make(parameters: InflightLoadParameters, _services: PluginServices) -> InflightLoadProducer:
    return InflightLoadProducer(parameters)


INFLIGHT_LOAD_PRODUCER: Final = PluginType(
    name="inflight-load-producer",
    parameters=InflightLoadParameters,
    make=_make,
    default_for=(INFLIGHT_LOAD,),
)
