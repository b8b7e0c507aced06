"""Objects such as CachePolicy and CacheTenant, read strictly from YAML.

One loader for every kind: ``ResourceLoader`` takes the files of a directory as bytes, and the
state before, and gives the state after. What a kind is made of says ``ResourceKind``.
"""

from inferencecache.resources.cache_policy import (
    CACHE_POLICY,
    CachePolicySpec,
    StrategySpec,
    ttl_ns_of,
)
from inferencecache.resources.cache_tenant import (
    CACHE_TENANT,
    CacheTenantSpec,
    QuotaSpec,
    quota_of,
    tenants_in_force,
)
from inferencecache.resources.flaw import Flaw
from inferencecache.resources.gateway_backend import (
    GATEWAY_BACKEND,
    BackendAuthSpec,
    BackendTlsSpec,
    GatewayBackendSpec,
    auth_header_of,
)
from inferencecache.resources.kind import (
    AGE,
    Column,
    KindRegistry,
    ResourceKind,
    ResourceScope,
    Rule,
    all_active,
)
from inferencecache.resources.load import ResourceLoader
from inferencecache.resources.model import (
    FileReading,
    LoadState,
    ObjectKey,
    ObjectState,
    Place,
    ResourceError,
    ResourceObject,
    SourceFile,
    StateName,
)
from inferencecache.resources.models import ResourceModel, wire_name
from inferencecache.resources.product import product_kinds

__all__ = [
    "AGE",
    "CACHE_POLICY",
    "CACHE_TENANT",
    "GATEWAY_BACKEND",
    "BackendAuthSpec",
    "BackendTlsSpec",
    "CachePolicySpec",
    "CacheTenantSpec",
    "Column",
    "FileReading",
    "Flaw",
    "GatewayBackendSpec",
    "KindRegistry",
    "LoadState",
    "ObjectKey",
    "ObjectState",
    "Place",
    "QuotaSpec",
    "ResourceError",
    "ResourceKind",
    "ResourceLoader",
    "ResourceModel",
    "ResourceObject",
    "ResourceScope",
    "Rule",
    "SourceFile",
    "StateName",
    "StrategySpec",
    "all_active",
    "auth_header_of",
    "product_kinds",
    "quota_of",
    "tenants_in_force",
    "ttl_ns_of",
    "wire_name",
]
