"""The library a gateway embeds: hints that can cost nothing but a hint.

By verb: ask with :class:`CacheClient` or :class:`AsyncCacheClient`; read a :class:`LookupResult`;
report with their ``reporter()``. The same without a server is in
:mod:`inferencecache.client.in_process`, apart because it brings the whole index with it.
``docs/sdk.md`` explains the contract behind it.
"""

from inferencecache.client.awaited import AsyncCacheClient
from inferencecache.client.blocking import CacheClient
from inferencecache.client.notices import ConfigurationWarning, Metrics, NoMetrics, log_warning
from inferencecache.client.reporting import AsyncReporter, Reporter
from inferencecache.client.result import LookupResult
from inferencecache.settings.client import ClientSettings
from inferencecache.transport.client_values import (
    CacheUpdate,
    DeliveryError,
    FailOpenCause,
    HeldPrefix,
    LookupQuery,
    ReplicaHint,
    ReplicaRef,
)
from inferencecache.types import CacheTier, ReasonCode, StatsReport

__all__ = [
    "AsyncCacheClient",
    "AsyncReporter",
    "CacheClient",
    "CacheTier",
    "CacheUpdate",
    "ClientSettings",
    "ConfigurationWarning",
    "DeliveryError",
    "FailOpenCause",
    "HeldPrefix",
    "LookupQuery",
    "LookupResult",
    "Metrics",
    "NoMetrics",
    "ReasonCode",
    "ReplicaHint",
    "ReplicaRef",
    "Reporter",
    "StatsReport",
    "log_warning",
]
