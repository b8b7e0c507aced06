"""Prefer the endpoints that have as a label what the caller passed on as a header."""

from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta

from inferencecache.picker.pipeline import EndpointView, Request
from inferencecache.picker.pipeline.parameters import PluginParameters
from inferencecache.picker.pipeline.registry import PluginServices, PluginType


class HeaderLabelParameters(PluginParameters, frozen=True):
    """Parameters.

    Attributes:
        header_name: The header, in any case.
        label_key: The label.
    """

    header_name: Annotated[str, Meta(min_length=1)]
    label_key: Annotated[str, Meta(min_length=1)]


class HeaderLabelAffinityScorer:
    """1 for an endpoint whose label equals the header, else 0; 0 for all without the header.

    Args:
        parameters: See there.
    """

    def __init__(self, parameters: HeaderLabelParameters) -> None:
        self._header = parameters.header_name.lower()
        self._label = parameters.label_key

    def score(self, request: Request, endpoints: Sequence[EndpointView]) -> Sequence[float]:
        """Return the points of *endpoints*."""
        wanted = request.headers.get(self._header)
        if wanted is None:
            return [0.0] * len(endpoints)
        return [float(endpoint.labels.get(self._label) == wanted) for endpoint in endpoints]


def _make(parameters: HeaderLabelParameters, _services: PluginServices) -> object:
    return HeaderLabelAffinityScorer(parameters)


HEADER_LABEL_AFFINITY_SCORER: Final = PluginType(
    name="header-label-affinity-scorer", parameters=HeaderLabelParameters, make=_make
)
