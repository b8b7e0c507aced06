"""Read inference requests out of bodies, and write another model into them."""

from inferencecache.picker.request.bad_body import (
    BadBodyError,
    BodyFlaw,
    LaboriousBodyError,
)
from inferencecache.picker.request.inference_request import Affinity, Api, InferenceRequest
from inferencecache.picker.request.parse import parse_body
from inferencecache.picker.request.rewrite import rewritten

__all__ = [
    "Affinity",
    "Api",
    "BadBodyError",
    "BodyFlaw",
    "InferenceRequest",
    "LaboriousBodyError",
    "parse_body",
    "rewritten",
]
