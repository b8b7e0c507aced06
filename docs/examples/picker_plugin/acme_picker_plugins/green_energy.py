"""Prefer engines on a clean grid, and count the requests and tokens that went there."""

from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta

from inferencecache.picker.pipeline import (
    AttributeKey,
    EndpointView,
    PluginParameters,
    PluginServices,
    PluginType,
    Produced,
    Request,
    Response,
    SchedulingResult,
)

CLEAN_SHARE: Final = AttributeKey("acme.example/clean-share", float)
"""About an endpoint: which share of its grid's power is clean, 0 to 1."""

_SHARES: Final = {"wind": 1.0, "mixed": 0.5, "coal": 0.0}


class GreenEnergyParameters(PluginParameters, frozen=True):
    """What the configuration may say.

    Attributes:
        label: The label of an endpoint that names its grid.
        timeout_ms: How long a Pick waits for the shares.
    """

    label: Annotated[str, Meta(min_length=1)] = "acme.example/grid"
    timeout_ms: Annotated[int, Meta(ge=1, le=1_000)] = 20


class GreenEnergy:
    """A DataProducer with a limit of its own, a Scorer of what it found, and a count of both ends.

    Attributes:
        requests_in_flight: Requests that were placed and have not ended.
        completion_tokens: Tokens of answers, as they were reported.
    """

    produces = (CLEAN_SHARE,)
    consumes = ()

    def __init__(self, parameters: GreenEnergyParameters, _services: PluginServices) -> None:
        self._parameters = parameters
        self.requests_in_flight = 0
        self.completion_tokens = 0

    def produce_timeout_ns(self) -> int:
        """Return how long a Pick waits."""
        return self._parameters.timeout_ms * 1_000_000

    async def produce(self, _request: Request, endpoints: Sequence[EndpointView]) -> Produced:
        """Look the shares up; a real plugin might ask a service here."""
        produced = Produced()
        for endpoint in endpoints:
            grid = endpoint.labels.get(self._parameters.label, "")
            produced.put_for(endpoint, CLEAN_SHARE, _SHARES.get(grid, 0.0))
        return produced

    def score(self, _request: Request, endpoints: Sequence[EndpointView]) -> Sequence[float]:
        """Return the shares as points."""
        return [endpoint.attributes.get(CLEAN_SHARE) or 0.0 for endpoint in endpoints]

    def pre_request(self, _request: Request, _result: SchedulingResult) -> None:
        """Count a request that was placed."""
        self.requests_in_flight += 1

    def response_body(self, _request: Request, response: Response, _endpoint: EndpointView) -> None:
        """Count it off at its end, however it ended."""
        if not response.end_of_stream:
            return
        self.requests_in_flight -= 1
        if response.usage is not None:
            self.completion_tokens += response.usage.completion_tokens


GREEN_ENERGY: Final = PluginType(
    name="acme-green-energy", parameters=GreenEnergyParameters, make=GreenEnergy
)
