"""Two sources of policies over one store: files and pushes.

Theory of operation: each layer is replaced as a whole, as its source gives it. Per tenant the layer
whose value changed last is in force, so the latest word counts wherever it was said. Giving the
same value again is no change: a controller that pushes every 30 seconds does not take back what
somebody has just edited in a file. A layer that says nothing about a tenant hides nothing: the
other layer's value is in force. Policies and quotas are decided separately, since a source may
give only one of them.

A lookup pays nothing for this: the merged result is put into the store, where it is one look-up.
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from inferencecache.policy.model import CachePolicy, PolicySnapshot, TenantQuota
from inferencecache.policy.store import PolicyStore, PreparedPolicies, Replacement, finish

Value = TypeVar("Value")


class PolicyLayer(StrEnum):
    """Where a policy or quota was said."""

    FILES = "files"
    PUSH = "push"


_SLICE_VALUES = 1_000

_OTHER = {PolicyLayer.FILES: PolicyLayer.PUSH, PolicyLayer.PUSH: PolicyLayer.FILES}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayeredPolicy:
    """What both layers say about one tenant's lookups.

    Attributes:
        tenant_id: The tenant.
        in_force: The layer that counts.
        files: Policy from files, or None.
        push: Policy last pushed, or None.
    """

    tenant_id: str
    in_force: PolicyLayer
    files: CachePolicy | None
    push: CachePolicy | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayeredQuota:
    """What both layers say about one tenant's quota.

    Attributes:
        tenant_id: The tenant.
        in_force: The layer that counts.
        files: Quota from files, or None.
        push: Quota last pushed, or None.
    """

    tenant_id: str
    in_force: PolicyLayer
    files: TenantQuota | None
    push: TenantQuota | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLayersView:
    """Both layers at one moment, for people; every part of it can be written as JSON.

    Attributes:
        revision: How often the policies in force have been replaced.
        policies: One row per tenant that a layer has a policy for, sorted.
        quotas: One row per tenant that a layer has a quota for, sorted.
    """

    revision: int
    policies: tuple[LayeredPolicy, ...]
    quotas: tuple[LayeredQuota, ...]


class PolicyLayers:
    """Keeps what each source says and puts the merged result into the store.

    Args:
        store: Nobody else may replace what is in it.
    """

    __slots__ = ("_policies", "_quotas", "_store")

    def __init__(self, store: PolicyStore) -> None:
        self._store = store
        empty: Mapping[str, PolicyLayer] = {}
        self._policies = _Layered[CachePolicy]({layer: {} for layer in PolicyLayer}, empty)
        self._quotas = _Layered[TenantQuota]({layer: {} for layer in PolicyLayer}, empty)

    def replace(self, layer: PolicyLayer, snapshot: PolicySnapshot) -> Replacement:
        """Put *snapshot* in the place of all that *layer* has said before.

        Args:
            layer: Whose word it is.
            snapshot: May name a tenant twice; the later one counts. Nameless ones are dropped.

        Returns:
            How many policies and quotas the layer has now, and how many it had before and has not
            any more; the other layer's are in force for those tenants, if it has any.

        Complexity: O(n log n) in the policies and quotas of both layers.
        """
        return self.install(self.prepare(layer, snapshot))

    def prepare(self, layer: PolicyLayer, snapshot: PolicySnapshot) -> "PreparedLayer":
        """Work out what :meth:`replace` would do, without doing it.

        The slow part, which may be left to another thread.

        Complexity: O(n log n) in the policies and quotas of both layers.
        """
        return finish(self.prepare_slices(layer, snapshot))

    def prepare_slices(
        self, layer: PolicyLayer, snapshot: PolicySnapshot
    ) -> Generator[None, None, "PreparedLayer"]:
        """Do what :meth:`prepare` does, giving way between bounded slices.

        Complexity: O(n log n) in the policies and quotas of both layers.
        """
        before = (self._policies, self._quotas)
        policies = {policy.namespace: policy for policy in snapshot.policies if policy.namespace}
        quotas = {quota.tenant_id: quota for quota in snapshot.tenants if quota.tenant_id}
        yield
        replacement = Replacement(
            policies=len(policies),
            quotas=len(quotas),
            policies_removed=before[0].missing(layer, policies),
            quotas_removed=before[1].missing(layer, quotas),
        )
        after = (
            (yield from before[0].replaced_slices(layer, policies)),
            (yield from before[1].replaced_slices(layer, quotas)),
        )
        in_force = None
        if after[0] is not before[0] or after[1] is not before[1]:
            in_force = yield from self._store.prepare_slices(_merged(*after))
        return PreparedLayer(
            before=before,
            policies=after[0],
            quotas=after[1],
            replacement=replacement,
            in_force=in_force,
        )

    def is_current(self, prepared: "PreparedLayer") -> bool:
        """Tell whether nothing has been replaced since *prepared* was worked out."""
        policies, quotas = prepared.before
        return policies is self._policies and quotas is self._quotas

    def install(self, prepared: "PreparedLayer") -> Replacement:
        """Put in force what :meth:`prepare` has worked out, which must still be current.

        Returns:
            As :meth:`replace`.

        Complexity: O(n) in the policies and quotas in force.
        """
        if prepared.in_force is not None:
            self._policies = prepared.policies
            self._quotas = prepared.quotas
            self._store.install(prepared.in_force)
        return prepared.replacement

    def moment(self) -> "PolicyLayersMoment":
        """Return both layers as they are now, whatever is replaced later.

        Complexity: O(1).
        """
        return PolicyLayersMoment(self._store.revision, self._policies, self._quotas)

    def view(self) -> PolicyLayersView:
        """Return both layers side by side.

        Complexity: O(n log n) in the policies and quotas of both layers.
        """
        return self.moment().view()


class _Layered(Generic[Value]):
    """One table of values by tenant in two layers; never changed, only replaced.

    Args:
        values: What each layer says.
        changed_last: The layer whose value changed last, for each tenant that has one.
    """

    __slots__ = ("_changed_last", "_values")

    def __init__(
        self,
        values: Mapping[PolicyLayer, dict[str, Value]],
        changed_last: Mapping[str, PolicyLayer],
    ) -> None:
        self._values = values
        self._changed_last = changed_last

    def missing(self, layer: PolicyLayer, values: dict[str, Value]) -> int:
        """Return how many tenants of *layer* are not among *values*."""
        return len(self._values[layer].keys() - values.keys())

    def said(self, layer: PolicyLayer, tenant_id: str) -> Value | None:
        """Return what *layer* says about the tenant, None for nothing."""
        return self._values[layer].get(tenant_id)

    def replaced_slices(
        self, layer: PolicyLayer, values: dict[str, Value]
    ) -> Generator[None, None, "_Layered[Value]"]:
        """Return the table with *values* in *layer*; itself where nothing differs."""
        before = self._values[layer]
        changed = []
        for count, (key, value) in enumerate(values.items(), start=1):
            if before.get(key) != value:
                changed.append(key)
            if not count % _SLICE_VALUES:
                yield
        yield
        removed = before.keys() - values.keys()
        if not changed and not removed:
            return self
        changed_last = dict(self._changed_last)
        changed_last.update(dict.fromkeys(changed, layer))
        other = self._values[_OTHER[layer]]
        for key in removed:
            if key not in other:
                del changed_last[key]
        return _Layered({layer: values, _OTHER[layer]: other}, changed_last)

    def in_force(self) -> Iterator[tuple[str, PolicyLayer, Value]]:
        """Yield each tenant with the layer that counts and its value."""
        for tenant_id, layer in self._changed_last.items():
            values = self._values[layer]
            if tenant_id in values:
                yield tenant_id, layer, values[tenant_id]
            else:
                yield tenant_id, _OTHER[layer], self._values[_OTHER[layer]][tenant_id]


def _merged(policies: _Layered[CachePolicy], quotas: _Layered[TenantQuota]) -> PolicySnapshot:
    """Return what is in force where both layers are merged."""
    return PolicySnapshot(
        policies=tuple(value for _, _, value in policies.in_force()),
        tenants=tuple(value for _, _, value in quotas.in_force()),
    )


def _tenant(row: tuple[str, PolicyLayer, Value]) -> str:
    """Return what rows are sorted by."""
    return row[0]


class PolicyLayersMoment(NamedTuple):
    """Both layers at one moment; nothing of it changes, so any thread may read it.

    Attributes:
        revision: How often the policies in force had been replaced.
        policies: Both layers' policies.
        quotas: Both layers' quotas.
    """

    revision: int
    policies: _Layered[CachePolicy]
    quotas: _Layered[TenantQuota]

    def view(self) -> PolicyLayersView:
        """Return both layers side by side.

        Complexity: O(n log n) in the policies and quotas of both layers.
        """
        return PolicyLayersView(
            revision=self.revision,
            policies=tuple(
                LayeredPolicy(
                    tenant_id=tenant_id,
                    in_force=layer,
                    files=self.policies.said(PolicyLayer.FILES, tenant_id),
                    push=self.policies.said(PolicyLayer.PUSH, tenant_id),
                )
                for tenant_id, layer, _ in sorted(self.policies.in_force(), key=_tenant)
            ),
            quotas=tuple(
                LayeredQuota(
                    tenant_id=tenant_id,
                    in_force=layer,
                    files=self.quotas.said(PolicyLayer.FILES, tenant_id),
                    push=self.quotas.said(PolicyLayer.PUSH, tenant_id),
                )
                for tenant_id, layer, _ in sorted(self.quotas.in_force(), key=_tenant)
            ),
        )


class PreparedLayer(NamedTuple):
    """What comes of replacing a layer.

    Attributes:
        before: The layers it was worked out from.
        policies: Both layers' policies then.
        quotas: Both layers' quotas then.
        replacement: What the layer will say, and what it will not say any more.
        in_force: What is put into the store, None where nothing differs.
    """

    before: tuple[_Layered[CachePolicy], _Layered[TenantQuota]]
    policies: _Layered[CachePolicy]
    quotas: _Layered[TenantQuota]
    replacement: Replacement
    in_force: PreparedPolicies | None
