"""What can be picked: worker sets, providers, and the pools that group them."""

from inferencecache.picker.fleet.candidate import Candidate
from inferencecache.picker.fleet.fleet import EMPTY_FLEET, Fleet
from inferencecache.picker.fleet.member import (
    Endpoint,
    EndpointRole,
    EngineKind,
    Member,
    ModelRow,
    ObjectName,
    PriorsForEngine,
    Provider,
    WorkerSet,
)
from inferencecache.picker.fleet.pool import ContextOverflow, Pool, RankBy, Tier

__all__ = [
    "EMPTY_FLEET",
    "Candidate",
    "ContextOverflow",
    "Endpoint",
    "EndpointRole",
    "EngineKind",
    "Fleet",
    "Member",
    "ModelRow",
    "ObjectName",
    "Pool",
    "PriorsForEngine",
    "Provider",
    "RankBy",
    "Tier",
    "WorkerSet",
]
