"""A simulated engine fleet fed by request traces: pure, repeatable, without I/O."""

from inferencecache.simulation.blind_strategies import LeastLoad, PrefixSticky, RoundRobin
from inferencecache.simulation.block_cache import BlockCache, CacheOutcome
from inferencecache.simulation.engine_compute import (
    Computed,
    ComputeRules,
    EngineCache,
    EngineCompute,
    Finished,
    FirstToken,
    Job,
)
from inferencecache.simulation.engine_config import PublisherPlan, plan_of
from inferencecache.simulation.engine_event import (
    ClearedBlocks,
    EngineEvent,
    RemovedBlocks,
    StoredBlocks,
)
from inferencecache.simulation.engine_layout import (
    LAYOUT_NAMES,
    LAYOUTS,
    EngineLayout,
    HashForm,
    layout_of,
)
from inferencecache.simulation.engine_life import EngineLife, EnginePrompt, ExpectedKey, LifeRules
from inferencecache.simulation.engine_page import render_page
from inferencecache.simulation.engine_player import EngineGauges, EnginePlayer
from inferencecache.simulation.engine_prompt import (
    TokenizedTrace,
    TraceBlock,
    tokenize_trace,
    trace_tokens,
)
from inferencecache.simulation.engine_script import Restart, Serve, Step, parse_script
from inferencecache.simulation.engine_stream import EngineStream, Message, StreamRules
from inferencecache.simulation.engine_traffic import TrafficRules, traffic
from inferencecache.simulation.experiment import Answer, Experiment, Served, Standing
from inferencecache.simulation.fleet import Fleet, InfiniteFleet, RoundRobinFleet, Tally, total_of
from inferencecache.simulation.fleet_run import (
    BlockPrefixes,
    EngineTally,
    FleetRules,
    FleetRun,
    ServedRequest,
    Strategy,
)
from inferencecache.simulation.fleet_summary import (
    CURVE_PERCENTS,
    SimulationSummary,
    StrategyOutcome,
    outcome_of,
)
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
from inferencecache.simulation.workload import (
    Draw,
    FleetRequest,
    cold_workload,
    session_workload,
    trace_workload,
)

__all__ = [
    "CURVE_PERCENTS",
    "LAYOUTS",
    "LAYOUT_NAMES",
    "TRACE_BLOCK_TOKENS",
    "Answer",
    "BlockCache",
    "BlockPrefixes",
    "CacheOutcome",
    "ClearedBlocks",
    "ComputeRules",
    "Computed",
    "CurvePoint",
    "Draw",
    "EngineCache",
    "EngineCompute",
    "EngineEvent",
    "EngineGauges",
    "EngineLayout",
    "EngineLife",
    "EnginePlayer",
    "EnginePrompt",
    "EngineStream",
    "EngineTally",
    "ExpectedKey",
    "Experiment",
    "Finished",
    "FirstToken",
    "Fleet",
    "FleetRequest",
    "FleetRules",
    "FleetRun",
    "HashForm",
    "InfiniteFleet",
    "Job",
    "LatencySummary",
    "LeastLoad",
    "LifeRules",
    "LoadWindow",
    "Message",
    "PrefixSticky",
    "Prompt",
    "PublisherPlan",
    "RemovedBlocks",
    "ReplaySummary",
    "ReplicaSummary",
    "Restart",
    "RoundRobin",
    "RoundRobinFleet",
    "Route",
    "RouteSource",
    "Router",
    "Serve",
    "Served",
    "ServedRequest",
    "SimulationSummary",
    "Standing",
    "Step",
    "StoredBlocks",
    "Strategy",
    "StrategyOutcome",
    "StrategySummary",
    "StreamRules",
    "Tally",
    "TokenizedTrace",
    "TraceBlock",
    "TraceRequest",
    "TrafficRules",
    "cold_workload",
    "due_in_ns",
    "layout_of",
    "outcome_of",
    "parse_request",
    "parse_script",
    "parse_trace",
    "percentile_ns",
    "plan_of",
    "prompt_of",
    "render_page",
    "seeded_order",
    "session_workload",
    "summarize",
    "summarize_latency",
    "summarize_replica",
    "tokenize_trace",
    "total_of",
    "trace_tokens",
    "trace_workload",
    "traffic",
]
