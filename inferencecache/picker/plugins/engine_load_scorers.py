"""Score endpoints by what their engines say: queue, running requests, use of the cache.

An endpoint whose engine says nothing, as a provider, gets 0.5; where no engine says anything there
is no signal.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Final

from msgspec import Meta

from inferencecache.picker.pipeline import EndpointView, LoadSnapshot, NoSignalError, Request
from inferencecache.picker.pipeline.parameters import PluginParameters
from inferencecache.picker.pipeline.registry import PluginServices, PluginType

UNKNOWN_SCORE: Final = 0.5
_QUEUE_THRESHOLD: Final = 128
_LOAD_AWARE_BEST: Final = 0.5

Read = Callable[[LoadSnapshot], float | None]


class RelativeScorer:
    """``(max - value) / (max - min)``; all equal gives 1. How far they are apart does not matter.

    Args:
        signal: What it is called.
        read: Reads it.
    """

    def __init__(self, signal: str, read: Read) -> None:
        self._signal = signal
        self._read = read

    def score(self, _request: Request, endpoints: Sequence[EndpointView]) -> Sequence[float]:
        """Return the points of *endpoints*."""
        values = _signals(self._signal, self._read, endpoints)
        known = [value for value in values if value is not None]
        most, least = max(known), min(known)
        spread = most - least
        return [
            UNKNOWN_SCORE if value is None else (most - value) / spread if spread else 1.0
            for value in values
        ]


class ShareScorer:
    """``best * (1 - value / limit)``, with the value cut off at the limit.

    Args:
        signal: What it is called.
        read: Reads it.
        limit: From where on an endpoint gets 0.
        best: What an endpoint without any gets.
    """

    def __init__(self, signal: str, read: Read, limit: float, best: float) -> None:
        self._signal = signal
        self._read = read
        self._limit = limit
        self._best = best

    def score(self, _request: Request, endpoints: Sequence[EndpointView]) -> Sequence[float]:
        """Return the points of *endpoints*."""
        values = _signals(self._signal, self._read, endpoints)
        return [
            UNKNOWN_SCORE
            if value is None
            else self._best * (1.0 - min(value, self._limit) / self._limit)
            for value in values
        ]


class LoadAwareParameters(PluginParameters, frozen=True):
    """Parameters.

    Attributes:
        threshold: Length of a queue from which on an endpoint gets 0.
    """

    threshold: Annotated[int, Meta(ge=1)] = _QUEUE_THRESHOLD


def _signals(signal: str, read: Read, endpoints: Sequence[EndpointView]) -> Sequence[float | None]:
    values = [read(endpoint.load) for endpoint in endpoints]
    if all(value is None for value in values):
        raise NoSignalError(signal)
    return values


def _waiting(load: LoadSnapshot) -> float | None:
    return load.waiting


def _running(load: LoadSnapshot) -> float | None:
    return load.running


def _cache_usage(load: LoadSnapshot) -> float | None:
    return load.cache_usage


def _queue(_parameters: PluginParameters, _services: PluginServices) -> RelativeScorer:
    return RelativeScorer("waiting requests", _waiting)


def _running_requests(_parameters: PluginParameters, _services: PluginServices) -> RelativeScorer:
    return RelativeScorer("running requests", _running)


def _cache(_parameters: PluginParameters, _services: PluginServices) -> ShareScorer:
    return ShareScorer("use of the cache", _cache_usage, limit=1.0, best=1.0)


def _load_aware(parameters: LoadAwareParameters, _services: PluginServices) -> ShareScorer:
    return ShareScorer(
        "waiting requests", _waiting, limit=parameters.threshold, best=_LOAD_AWARE_BEST
    )


QUEUE_SCORER: Final = PluginType(name="queue-scorer", parameters=PluginParameters, make=_queue)
RUNNING_REQUESTS_SCORER: Final = PluginType(
    name="running-requests-size-scorer", parameters=PluginParameters, make=_running_requests
)
CACHE_UTILIZATION_SCORER: Final = PluginType(
    name="kv-cache-utilization-scorer", parameters=PluginParameters, make=_cache
)
LOAD_AWARE_SCORER: Final = PluginType(
    name="load-aware-scorer", parameters=LoadAwareParameters, make=_load_aware
)
