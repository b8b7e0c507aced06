"""A simulated engine fleet fed by request traces: pure, repeatable, without I/O."""

from inferencecache.simulation.block_cache import BlockCache, CacheOutcome
from inferencecache.simulation.experiment import Answer, Experiment, Served, Standing
from inferencecache.simulation.fleet import Fleet, InfiniteFleet, RoundRobinFleet, Tally, total_of
from inferencecache.simulation.pace import due_in_ns
from inferencecache.simulation.prompt import Prompt, prompt_of
from inferencecache.simulation.routing import LoadWindow, Route, Router, RouteSource, seeded_order
from inferencecache.simulation.summary import (
    CurvePoint,
    LatencySummary,
    ReplaySummary,
    ReplicaSummary,
    StrategySummary,
    percentile_ns,
    summarize,
    summarize_latency,
    summarize_replica,
)
from inferencecache.simulation.trace import (
    TRACE_BLOCK_TOKENS,
    TraceRequest,
    parse_request,
    parse_trace,
)

__all__ = [
    "TRACE_BLOCK_TOKENS",
    "Answer",
    "BlockCache",
    "CacheOutcome",
    "CurvePoint",
    "Experiment",
    "Fleet",
    "InfiniteFleet",
    "LatencySummary",
    "LoadWindow",
    "Prompt",
    "ReplaySummary",
    "ReplicaSummary",
    "RoundRobinFleet",
    "Route",
    "RouteSource",
    "Router",
    "Served",
    "Standing",
    "StrategySummary",
    "Tally",
    "TraceRequest",
    "due_in_ns",
    "parse_request",
    "parse_trace",
    "percentile_ns",
    "prompt_of",
    "seeded_order",
    "summarize",
    "summarize_latency",
    "summarize_replica",
    "total_of",
]
