"""Endpoints as plugins see them: a candidate, its load, and what producers say about it."""

from collections.abc import Mapping

import msgspec

from inferencecache.picker.fleet import Candidate
from inferencecache.picker.pipeline.attributes import NOTHING_KNOWN, Attributes
from inferencecache.picker.pipeline.load import NO_LOAD, LoadSnapshot


class EndpointView(msgspec.Struct, eq=False):
    """One place that could serve a request; made for that request alone.

    Attributes:
        candidate: Which place.
        load: What it had to do when the Pick looked; the same for every plugin of the request.
        attributes: What producers said about this place for this request.
    """

    candidate: Candidate
    load: LoadSnapshot = NO_LOAD
    attributes: Attributes = NOTHING_KNOWN

    def __repr__(self) -> str:
        return f"EndpointView({self.name})"

    @property
    def name(self) -> str:
        """Where it is; its load and its failures are kept under this name."""
        return self.candidate.name

    @property
    def target_model(self) -> str:
        """What the body will name if this place is chosen."""
        return self.candidate.model.name

    @property
    def labels(self) -> Mapping[str, str]:
        """As configured; none for a provider."""
        endpoint = self.candidate.endpoint
        return dict(endpoint.labels) if endpoint is not None else {}
