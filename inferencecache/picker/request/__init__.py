"""Read inference requests out of bodies, and write another model into them."""

from inferencecache.picker.request.bad_body import BadBodyError, BodyFlaw
from inferencecache.picker.request.inference_request import Affinity, Api, InferenceRequest
from inferencecache.picker.request.parse import is_laborious, parse_body
from inferencecache.picker.request.rewrite import rewritten

__all__ = [
    "Affinity",
    "Api",
    "BadBodyError",
    "BodyFlaw",
    "InferenceRequest",
    "is_laborious",
    "parse_body",
    "rewritten",
]
