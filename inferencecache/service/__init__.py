"""Use cases of the cache plane, without I/O: report, publish, look up, show state."""

from inferencecache.service.gates import Gate
from inferencecache.service.plane import CachePlane, IgnoreLookups, PlaneParts
from inferencecache.service.resolve import FailOpen, ResolvedInput
from inferencecache.service.route import LookupObserver, RouteSteps
from inferencecache.service.route_answer import RouteAnswer
from inferencecache.service.route_request import RouteRequest
from inferencecache.service.route_trace import GateRecord, RouteTrace
from inferencecache.service.tokenizer import Tokenization, Tokenizer, Wait

__all__ = [
    "CachePlane",
    "FailOpen",
    "Gate",
    "GateRecord",
    "IgnoreLookups",
    "LookupObserver",
    "PlaneParts",
    "ResolvedInput",
    "RouteAnswer",
    "RouteRequest",
    "RouteSteps",
    "RouteTrace",
    "Tokenization",
    "Tokenizer",
    "Wait",
]
