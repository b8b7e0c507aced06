"""Read inference requests out of bodies, and write another model into them."""

from inferencecache.picker.request.bad_body import (
    BadBodyError,
    BodyFlaw,
    LaboriousBodyError,
)
from inferencecache.picker.request.envelope import TopLevel
from inferencecache.picker.request.inference_request import Affinity, Api, InferenceRequest
from inferencecache.picker.request.parse import ParsedBody, parse_body, read_body
from inferencecache.picker.request.rewrite import rewritten

__all__ = [
    "Affinity",
    "Api",
    "BadBodyError",
    "BodyFlaw",
    "InferenceRequest",
    "LaboriousBodyError",
    "ParsedBody",
    "TopLevel",
    "parse_body",
    "read_body",
    "rewritten",
]
