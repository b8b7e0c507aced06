"""Policies: what each tenant wants of its lookups, and how much it may keep."""

from inferencecache.policy.encode import encode_policy_push
from inferencecache.policy.layers import (
    LayeredPolicy,
    LayeredQuota,
    PolicyLayer,
    PolicyLayers,
    PolicyLayersView,
    PreparedLayer,
)
from inferencecache.policy.model import (
    CachePolicy,
    PolicySnapshot,
    ResolvedPolicy,
    Strategy,
    TenantQuota,
)
from inferencecache.policy.push import VERSION_MAX, VERSION_MIN, decode_policy_push
from inferencecache.policy.push_error import PolicyPushError
from inferencecache.policy.store import PolicyStore, Replacement

__all__ = [
    "VERSION_MAX",
    "VERSION_MIN",
    "CachePolicy",
    "LayeredPolicy",
    "LayeredQuota",
    "PolicyLayer",
    "PolicyLayers",
    "PolicyLayersView",
    "PolicyPushError",
    "PolicySnapshot",
    "PolicyStore",
    "PreparedLayer",
    "Replacement",
    "ResolvedPolicy",
    "Strategy",
    "TenantQuota",
    "decode_policy_push",
    "encode_policy_push",
]
