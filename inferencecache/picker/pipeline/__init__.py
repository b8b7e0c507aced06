"""The pipeline of plugins that a Pick goes through: its hooks, its data, its director."""

from inferencecache.picker.pipeline.attributes import AttributeKey, Attributes
from inferencecache.picker.pipeline.director import Director, DirectorParts, PipelineRun, Placed
from inferencecache.picker.pipeline.endpoint import EndpointView
from inferencecache.picker.pipeline.faults import DeniedError, NoSignalError
from inferencecache.picker.pipeline.hooks import (
    Admitter,
    DataProducer,
    Filter,
    ImmediateProducer,
    Picker,
    PreAdmitter,
    PreRequest,
    ProfileHandler,
    ResponseBodyProcessor,
    ResponseHeaderProcessor,
    Scorer,
    TimeoutAwareProducer,
)
from inferencecache.picker.pipeline.keys import (
    INFLIGHT_LOAD,
    PREFIX_MATCH,
    PROMPT_TOKENS,
    InflightLoad,
    PrefixMatch,
    PromptTokens,
)
from inferencecache.picker.pipeline.load import NO_LOAD, LoadSnapshot
from inferencecache.picker.pipeline.observer import (
    FailureKind,
    Hook,
    IgnorePlugins,
    PipelineObserver,
)
from inferencecache.picker.pipeline.parameters import PluginParameters
from inferencecache.picker.pipeline.pipeline import EMPTY_PIPELINE, Pipeline
from inferencecache.picker.pipeline.produced import Produced
from inferencecache.picker.pipeline.producer_work import ProducerRunner, ProducerWork
from inferencecache.picker.pipeline.registry import PluginRegistry, PluginServices, PluginType
from inferencecache.picker.pipeline.request import Request
from inferencecache.picker.pipeline.response import Response, TerminationCause, Usage
from inferencecache.picker.pipeline.scheduling import Ranking, SchedulingResult, Scored, ScorePart

__all__ = [
    "EMPTY_PIPELINE",
    "INFLIGHT_LOAD",
    "NO_LOAD",
    "PREFIX_MATCH",
    "PROMPT_TOKENS",
    "Admitter",
    "AttributeKey",
    "Attributes",
    "DataProducer",
    "DeniedError",
    "Director",
    "DirectorParts",
    "EndpointView",
    "FailureKind",
    "Filter",
    "Hook",
    "IgnorePlugins",
    "ImmediateProducer",
    "InflightLoad",
    "LoadSnapshot",
    "NoSignalError",
    "Picker",
    "Pipeline",
    "PipelineObserver",
    "PipelineRun",
    "Placed",
    "PluginParameters",
    "PluginRegistry",
    "PluginServices",
    "PluginType",
    "PreAdmitter",
    "PreRequest",
    "PrefixMatch",
    "Produced",
    "ProducerRunner",
    "ProducerWork",
    "ProfileHandler",
    "PromptTokens",
    "Ranking",
    "Request",
    "Response",
    "ResponseBodyProcessor",
    "ResponseHeaderProcessor",
    "SchedulingResult",
    "ScorePart",
    "Scored",
    "Scorer",
    "TerminationCause",
    "TimeoutAwareProducer",
    "Usage",
]
