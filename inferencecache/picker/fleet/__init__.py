"""What can be picked: worker sets, providers, and the pools that group them."""

from inferencecache.picker.fleet.candidate import Candidate, CandidateCard
from inferencecache.picker.fleet.fleet import EMPTY_FLEET, Fleet
from inferencecache.picker.fleet.member import (
    Endpoint,
    EndpointRole,
    EngineKind,
    Member,
    ModelRow,
    ObjectName,
    PrefixUse,
    PriorsForEngine,
    Provider,
    WorkerSet,
)
from inferencecache.picker.fleet.pool import ContextOverflow, Pool, RankBy, Tier
from inferencecache.picker.fleet.qualifier import Qualifier
from inferencecache.picker.fleet.rewrites import ModelRewrite, RewriteRule, RewriteTarget
from inferencecache.picker.fleet.rules import (
    NO_LIMITS,
    PickerPolicy,
    PolicyRule,
    RequestLimits,
    RuleAction,
)

__all__ = [
    "EMPTY_FLEET",
    "NO_LIMITS",
    "Candidate",
    "CandidateCard",
    "ContextOverflow",
    "Endpoint",
    "EndpointRole",
    "EngineKind",
    "Fleet",
    "Member",
    "ModelRewrite",
    "ModelRow",
    "ObjectName",
    "PickerPolicy",
    "PolicyRule",
    "Pool",
    "PrefixUse",
    "PriorsForEngine",
    "Provider",
    "Qualifier",
    "RankBy",
    "RequestLimits",
    "RewriteRule",
    "RewriteTarget",
    "RuleAction",
    "Tier",
    "WorkerSet",
]
