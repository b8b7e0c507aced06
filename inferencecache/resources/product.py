"""Every kind of the product, in the order in which people meet them."""

from typing import Final

from inferencecache.resources.cache_policy import CACHE_POLICY
from inferencecache.resources.cache_tenant import CACHE_TENANT
from inferencecache.resources.kind import KindRegistry
from inferencecache.resources.tenant_access import TENANT_ACCESS

_KINDS: Final = (CACHE_POLICY, CACHE_TENANT, TENANT_ACCESS)


def product_kinds() -> KindRegistry:
    """Return a registry of all kinds of the product."""
    return KindRegistry(_KINDS)
