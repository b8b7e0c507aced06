"""Write another model into a body without touching anything else."""

import msgspec

from inferencecache.picker.bodies import Rope
from inferencecache.picker.request.inference_request import InferenceRequest


def rewritten(content: Rope, request: InferenceRequest, target_model: str) -> Rope:
    """Return *content* with *target_model* as the value of every top-level ``model``.

    A body in which all of them name it already is returned as it is, to the byte. One that has no
    ``model`` gets it as its first member, one whose ``model`` is null in the place of that.

    Args:
        content: The body that *request* was read from.
        request: Where the values stand.
        target_model: What they shall be.
    """
    if request.lacks_model and not any(end > start for start, end in request.model_spans):
        return content.spliced(request.model_spans, _member(target_model))
    if request.model_names and all(name == target_model for name in request.model_names):
        return content
    return content.spliced(request.model_spans, msgspec.json.encode(target_model))


def _member(target_model: str) -> bytes:
    return b'"model":' + msgspec.json.encode(target_model) + b","
