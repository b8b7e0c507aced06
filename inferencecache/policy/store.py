"""The policies in force: replaced as a whole, read with one dictionary look-up."""

from collections.abc import Generator
from typing import Final, NamedTuple, TypeVar

from inferencecache.policy.model import (
    CachePolicy,
    PolicySnapshot,
    ResolvedPolicy,
    TenantQuota,
)
from inferencecache.policy.resolve import resolve, resolve_default
from inferencecache.settings.policy import PolicySettings
from inferencecache.types import PROBE_TENANT_ID, EvictionAlgorithm

_FIRST_REVISION: Final = 0


_SLICE_POLICIES: Final = 250

ResultT = TypeVar("ResultT")


def finish(slices: Generator[None, None, ResultT]) -> ResultT:
    """Return the result of sliced work done at once."""
    while True:
        try:
            next(slices)
        except StopIteration as finished:
            result: ResultT = finished.value
            return result


class Replacement(NamedTuple):
    """What a replace left and what it took away, for the caller to tell.

    Attributes:
        policies: Tenants that have a policy now.
        quotas: Tenants that have a quota now.
        policies_removed: Tenants that had a policy and have none now.
        quotas_removed: Tenants that had a quota and have none now.
    """

    policies: int
    quotas: int
    policies_removed: int
    quotas_removed: int


class PreparedPolicies(NamedTuple):
    """Policies resolved and ready to be put in force.

    Attributes:
        resolved: What applies, by tenant.
        quotas: Distinct keys a tenant may hold, by tenant.
        snapshot: What they were made of, sorted.
    """

    resolved: dict[str, ResolvedPolicy]
    quotas: dict[str, int]
    snapshot: PolicySnapshot


class PolicyStore:
    """Every tenant's policy and quota, resolved when they are replaced.

    Also answers what the index asks about a tenant: *revision*, *ttl_ns*, *quota*, *algorithm*.

    Args:
        settings: What holds where no policy says otherwise.
        default_ttl_ns: Lifetime of entries where no policy says otherwise, nanoseconds, > 0.

    Attributes:
        revision: How often the policies have been replaced; a plain attribute, for every lookup
            asks.
    """

    __slots__ = (
        "_default",
        "_default_ttl_ns",
        "_quotas",
        "_resolved",
        "_settings",
        "_snapshot",
        "revision",
    )

    def __init__(self, settings: PolicySettings, default_ttl_ns: int) -> None:
        self._settings = settings
        self._default_ttl_ns = default_ttl_ns
        self._default = resolve_default(settings, default_ttl_ns)
        self._resolved: dict[str, ResolvedPolicy] = {}
        self._quotas: dict[str, int] = {}
        self._snapshot = PolicySnapshot()
        self.revision = _FIRST_REVISION

    @property
    def snapshot(self) -> PolicySnapshot:
        """What was last pushed, one policy and one quota per tenant, sorted by tenant."""
        return self._snapshot

    def replace(self, snapshot: PolicySnapshot) -> Replacement:
        """Put *snapshot* in force; whatever it does not contain is gone.

        Args:
            snapshot: May name a tenant twice; the later one counts. Nameless ones are dropped.

        Returns:
            How many policies and quotas are in force now, and how many were and are not any more.

        Complexity: O(n log n) in policies and quotas.
        """
        return self.install(self.prepare(snapshot))

    def prepare(self, snapshot: PolicySnapshot) -> PreparedPolicies:
        """Resolve *snapshot* without putting it in force; reads and changes nothing of the store.

        The slow part of :meth:`replace`: unlike everything else it may be left to another thread.

        Complexity: O(n log n) in policies and quotas.
        """
        return finish(self.prepare_slices(snapshot))

    def prepare_slices(self, snapshot: PolicySnapshot) -> Generator[None, None, PreparedPolicies]:
        """Do what :meth:`prepare` does, giving way between bounded slices.

        Complexity: O(n log n) in policies and quotas.
        """
        policies = {policy.namespace: policy for policy in snapshot.policies if policy.namespace}
        yield
        tenants = {tenant.tenant_id: tenant for tenant in snapshot.tenants if tenant.tenant_id}
        yield
        resolved: dict[str, ResolvedPolicy] = {}
        for count, (namespace, policy) in enumerate(policies.items(), start=1):
            resolved[namespace] = resolve(policy, self._settings, self._default_ttl_ns)
            if not count % _SLICE_POLICIES:
                yield
        quotas = {
            tenant_id: max(0, tenant.max_index_entries)
            for tenant_id, tenant in tenants.items()
            if tenant_id != PROBE_TENANT_ID
        }
        yield
        return PreparedPolicies(
            resolved=resolved, quotas=quotas, snapshot=_sorted_snapshot(policies, tenants)
        )

    def install(self, prepared: PreparedPolicies) -> Replacement:
        """Put in force what :meth:`prepare` has made.

        Returns:
            How many policies and quotas are in force now, and how many were and are not any more.

        Complexity: O(n) in policies and quotas, a set difference of their names.
        """
        replacement = Replacement(
            policies=len(prepared.resolved),
            quotas=len(prepared.quotas),
            policies_removed=len(self._resolved.keys() - prepared.resolved.keys()),
            quotas_removed=len(self._quotas.keys() - prepared.quotas.keys()),
        )
        self._resolved = prepared.resolved
        self._quotas = prepared.quotas
        self._snapshot = prepared.snapshot
        self.revision += 1
        return replacement

    def resolved(self, tenant_id: str) -> ResolvedPolicy:
        """Return what applies to the tenant's lookups.

        Complexity: O(1).
        """
        return self._resolved.get(tenant_id, self._default)

    def ttl_ns(self, tenant_id: str) -> int:
        """Return the lifetime of the tenant's entries, in nanoseconds, > 0.

        Complexity: O(1).
        """
        return self._resolved.get(tenant_id, self._default).ttl_ns

    def quota(self, tenant_id: str) -> int | None:
        """Return how many distinct keys the tenant may hold, >= 0, or None for no limit.

        Complexity: O(1).
        """
        return self._quotas.get(tenant_id)

    def algorithm(self, tenant_id: str) -> EvictionAlgorithm:
        """Return how the tenant's cap victims are chosen.

        Complexity: O(1).
        """
        return self._resolved.get(tenant_id, self._default).algorithm


def _sorted_snapshot(
    policies: dict[str, CachePolicy], tenants: dict[str, TenantQuota]
) -> PolicySnapshot:
    """Return what was pushed, sorted by tenant."""
    return PolicySnapshot(
        policies=tuple(policies[namespace] for namespace in sorted(policies)),
        tenants=tuple(tenants[tenant_id] for tenant_id in sorted(tenants)),
    )
