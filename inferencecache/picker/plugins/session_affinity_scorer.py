"""Send the requests of one session to the same endpoint, as long as that is not overloaded.

Theory of operation: every endpoint draws a number from the session and its own name; the highest
one is the session's. When an endpoint goes, only its own sessions move. An endpoint takes at most
its share of the requests in flight, times 1.25; a session whose endpoint is full goes to the next
highest number, always the same one.

Source: Thaler and Ravishankar, rendezvous hashing; Mirrokni, Thorup and Zadimoghaddam, consistent
hashing with bounded loads.
"""

from collections.abc import Sequence
from math import ceil, log
from typing import Annotated, Final, Literal

import xxhash
from msgspec import Meta

from inferencecache.picker.pipeline import EndpointView, Request
from inferencecache.picker.pipeline.parameters import PluginParameters
from inferencecache.picker.pipeline.registry import PluginServices, PluginType

BodyKey = Literal[
    "session_id", "conversation", "prompt_cache_key", "user", "safety_identifier", "cache_salt"
]

_BODY_KEYS: Final[tuple[BodyKey, ...]] = (
    "session_id",
    "conversation",
    "prompt_cache_key",
    "user",
    "safety_identifier",
)
_LOAD_FACTOR: Final = 1.25
_HASHES: Final = 2.0**64


class SessionAffinityParameters(PluginParameters, frozen=True):
    """Parameters.

    Attributes:
        header_name: A header that names the session, before any key of the body; empty for none.
        body_keys: Keys of the body that name it, the first that has a value counts.
        load_factor: How much more than its share an endpoint may have in flight.
    """

    header_name: str = "x-session-id"
    body_keys: tuple[BodyKey, ...] = _BODY_KEYS
    load_factor: Annotated[float, Meta(ge=1, le=100)] = _LOAD_FACTOR


class SessionAffinityScorer:
    """1 for the session's endpoint and 0 for the others; 0 for all without a session.

    Args:
        parameters: See there.
    """

    def __init__(self, parameters: SessionAffinityParameters) -> None:
        self._header = parameters.header_name.lower()
        self._body_keys = parameters.body_keys
        self._load_factor = parameters.load_factor

    def score(self, request: Request, endpoints: Sequence[EndpointView]) -> Sequence[float]:
        """Return the points of *endpoints*."""
        session = self._session(request)
        if not session or not endpoints:
            return [0.0] * len(endpoints)
        seed = f"{len(request.tenant)}:{request.tenant}{session}"
        weights = [_weight(endpoint) for endpoint in endpoints]
        total = sum(weights)
        load = sum(endpoint.load.requests_in_flight for endpoint in endpoints) + 1
        order = sorted(
            range(len(endpoints)),
            key=lambda place: (_number(seed, endpoints[place].name, weights[place]), place),
        )
        room = (
            place
            for place in order
            if endpoints[place].load.requests_in_flight
            < ceil(self._load_factor * load * weights[place] / total)
        )
        chosen = next(room, order[0])
        return [float(place == chosen) for place in range(len(endpoints))]

    def _session(self, request: Request) -> str:
        named = request.headers.get(self._header, "")
        if named:
            return named
        affinity = request.parsed.affinity
        for key in self._body_keys:
            value: str = getattr(affinity, key)
            if value:
                return value
        return ""


def _weight(endpoint: EndpointView) -> float:
    worker = endpoint.candidate.endpoint
    return worker.weight if worker is not None else 1.0


def _number(seed: str, name: str, weight: float) -> float:
    """Return the number that *name* draws; the lowest wins, with odds by weight."""
    digest = xxhash.xxh3_64_intdigest(f"{seed}\0{name}".encode("utf-8", "surrogatepass"))
    drawn = (digest + 1) / (_HASHES + 1)
    return -log(drawn) / weight


def _make(
    parameters: SessionAffinityParameters, _services: PluginServices
) -> SessionAffinityScorer:
    return SessionAffinityScorer(parameters)


SESSION_AFFINITY_SCORER: Final = PluginType(
    name="session-affinity-scorer", parameters=SessionAffinityParameters, make=_make
)
