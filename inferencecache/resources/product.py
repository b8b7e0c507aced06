"""Every kind of the product, in the order in which people meet them."""

from typing import Final

from inferencecache.resources.cache_policy import CACHE_POLICY
from inferencecache.resources.cache_tenant import CACHE_TENANT
from inferencecache.resources.kind import KindRegistry

_KINDS: Final = (CACHE_POLICY, CACHE_TENANT)


def product_kinds() -> KindRegistry:
    """Return a registry of all kinds of the product."""
    return KindRegistry(_KINDS)
