"""Score endpoints by the requests that this picker has given them."""

from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta

from inferencecache.picker.pipeline import EndpointView, Request
from inferencecache.picker.pipeline.parameters import PluginParameters
from inferencecache.picker.pipeline.registry import PluginServices, PluginType


class ActiveRequestParameters(PluginParameters, frozen=True):
    """Parameters.

    Attributes:
        idle_threshold: Up to so many requests an endpoint counts as idle.
        max_busy_score: Most points of an endpoint that is busy, 0 to 1.
    """

    idle_threshold: Annotated[int, Meta(ge=0)] = 0
    max_busy_score: Annotated[float, Meta(ge=0, le=1)] = 1.0


class ActiveRequestScorer:
    """Idle endpoints 1; busy ones ``(max - requests) / max`` of the most a busy one can get.

    Args:
        parameters: See there.
    """

    def __init__(self, parameters: ActiveRequestParameters) -> None:
        self._idle = parameters.idle_threshold
        self._busy_score = parameters.max_busy_score

    def score(self, _request: Request, endpoints: Sequence[EndpointView]) -> Sequence[float]:
        """Return the points of *endpoints*."""
        counts = [endpoint.load.requests_in_flight for endpoint in endpoints]
        most = max(counts, default=0)
        return [
            1.0 if count <= self._idle else self._busy_score * (most - count) / most
            for count in counts
        ]


def _make(parameters: ActiveRequestParameters, _services: PluginServices) -> ActiveRequestScorer:
    return ActiveRequestScorer(parameters)


ACTIVE_REQUEST_SCORER: Final = PluginType(
    name="active-request-scorer", parameters=ActiveRequestParameters, make=_make
)
