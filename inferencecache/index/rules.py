"""What the index needs to know of policy."""

from typing import Protocol

from inferencecache.types import EvictionAlgorithm


class TenantRules(Protocol):
    """Per-tenant rules, resolved with their defaults; read at each use."""

    @property
    def revision(self) -> int:
        """A number that changes whenever any rule may have changed."""
        ...

    def ttl_ns(self, tenant_id: str) -> int:
        """Return the time to live of the tenant's entries, in nanoseconds, > 0."""
        ...

    def quota(self, tenant_id: str) -> int | None:
        """Return the most distinct keys the tenant may hold, >= 0, or None for no limit."""
        ...

    def algorithm(self, tenant_id: str) -> EvictionAlgorithm:
        """Return how the tenant's cap victims are chosen."""
        ...
