"""What the index needs to know of policy."""

from typing import Protocol

from inferencecache.types import EvictionAlgorithm


class TenantRules(Protocol):
    """Per-tenant rules, resolved with their defaults; read at each use."""

    @property
    def revision(self) -> int:
        """A number that changes whenever any rule may have changed.

        Complexity: O(1).
        """
        ...

    def ttl_ns(self, tenant_id: str) -> int:
        """Return the time to live of the tenant's entries, in nanoseconds, > 0.

        Complexity: O(1), as it is asked for at each lookup.
        """
        ...

    def quota(self, tenant_id: str) -> int | None:
        """Return the most distinct keys the tenant may hold, >= 0, or None for no limit.

        Complexity: O(1).
        """
        ...

    def algorithm(self, tenant_id: str) -> EvictionAlgorithm:
        """Return how the tenant's cap victims are chosen.

        Complexity: O(1).
        """
        ...
