"""The time to a request's first token: estimated from speeds, predicted from reports."""

from inferencecache.picker.ttft.estimate import estimated_ttft_ms
from inferencecache.picker.ttft.foresight import Foresight
from inferencecache.picker.ttft.predict_providers import ProviderPredictor
from inferencecache.picker.ttft.predict_workers import WorkerPredictor
from inferencecache.picker.ttft.situation import Situation

__all__ = ["Foresight", "ProviderPredictor", "Situation", "WorkerPredictor", "estimated_ttft_ms"]
