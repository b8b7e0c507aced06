"""Prefer the endpoints that have the request's LoRA adapter loaded, or room for it."""

from collections.abc import Sequence
from typing import Final

from inferencecache.picker.pipeline import EndpointView, NoSignalError, Request
from inferencecache.picker.pipeline.parameters import PluginParameters
from inferencecache.picker.pipeline.registry import PluginServices, PluginType
from inferencecache.picker.plugins.engine_load_scorers import UNKNOWN_SCORE

_LOADED: Final = 1.0
_HAS_ROOM: Final = 0.8
_IS_WAITED_FOR: Final = 0.6


class LoraAffinityScorer:
    """Loaded 1, room for one more 0.8, waited for already 0.6, else 0.

    A model that is no adapter is loaded everywhere; an engine that says nothing gets 0.5.
    """

    def score(self, _request: Request, endpoints: Sequence[EndpointView]) -> Sequence[float]:
        """Return the points of *endpoints*."""
        scores = [_score(endpoint) for endpoint in endpoints]
        if all(score is None for score in scores):
            raise NoSignalError("loaded adapters")
        return [UNKNOWN_SCORE if score is None else score for score in scores]


def _score(endpoint: EndpointView) -> float | None:
    """Return the points of *endpoint*, None if its engine says nothing about adapters."""
    model, load = endpoint.candidate.model, endpoint.load
    if not model.adapter_of:
        return _LOADED
    if load.adapters is None:
        return None
    if model.name in load.adapters:
        return _LOADED
    used = len(load.adapters) + len(load.waiting_adapters)
    if load.adapters_max is not None and used < load.adapters_max:
        return _HAS_ROOM
    return _IS_WAITED_FOR if model.name in load.waiting_adapters else 0.0


def _make(_parameters: PluginParameters, _services: PluginServices) -> LoraAffinityScorer:
    return LoraAffinityScorer()


LORA_AFFINITY_SCORER: Final = PluginType(
    name="lora-affinity-scorer", parameters=PluginParameters, make=_make
)
