"""CacheTenant: how much of the index one tenant may hold."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal

from msgspec import Meta

from inferencecache.resources.flaw import Flaw, shown
from inferencecache.resources.kind import AGE, Column, ResourceKind, Rule
from inferencecache.resources.model import (
    LoadState,
    ObjectKey,
    ObjectState,
    ResourceObject,
    StateName,
)
from inferencecache.resources.models import Conditions, ObservedGeneration, ResourceModel
from inferencecache.resources.settle import SLICE_OBJECTS
from inferencecache.types import PROBE_TENANT_ID

_INT64_MAX: Final = 2**63 - 1

EntryCount = Annotated[
    int,
    Meta(
        ge=0,
        le=_INT64_MAX,
        description="Distinct prefixes.",
        extra_json_schema={"format": "int64"},
    ),
]


class QuotaSpec(ResourceModel, frozen=True, kw_only=True):
    """What a tenant may hold; a limit that is left out does not exist."""

    max_index_entries: EntryCount | None = None


class CryptoSpec(ResourceModel, frozen=True, kw_only=True):
    """Reserved; has no members."""


class CacheTenantSpec(ResourceModel, frozen=True, kw_only=True):
    """Names a tenant and bounds it."""

    tenant_id: Annotated[
        str,
        Meta(
            min_length=1,
            description="The tenant, as reports and lookups name it.",
            extra_json_schema={"example": "team-a"},
        ),
    ]
    quota: QuotaSpec | None = None
    isolation_mode: (
        Annotated[
            Literal["Fairness"],
            Meta(
                description="How tenants are kept apart; there is one way.",
                extra_json_schema={"default": "Fairness"},
            ),
        ]
        | None
    ) = None
    crypto: CryptoSpec | None = None


class CacheTenantStatus(ResourceModel, frozen=True, kw_only=True):
    """Written by nobody yet."""

    index_entries: EntryCount | None = None
    observed_generation: ObservedGeneration | None = None
    conditions: Conditions | None = None


def quota_of(spec: CacheTenantSpec) -> int | None:
    """Return the most distinct prefixes that the tenant may hold, None for no limit."""
    return spec.quota.max_index_entries if spec.quota is not None else None


def tenants_in_force(
    objects: Sequence[ResourceObject[CacheTenantSpec]],
) -> dict[str, ResourceObject[CacheTenantSpec]]:
    """Return the object that counts for each tenant.

    Args:
        objects: Sorted by namespace and name.

    Returns:
        By tenant, the first object with a quota, or the first at all where none has one.
    """
    chosen: dict[str, ResourceObject[CacheTenantSpec]] = {}
    for found in objects:
        before = chosen.get(found.spec.tenant_id)
        if before is None or (quota_of(before.spec) is None and quota_of(found.spec) is not None):
            chosen[found.spec.tenant_id] = found
    return chosen


def _check_tenant_id(spec: CacheTenantSpec) -> Flaw | None:
    if spec.tenant_id != PROBE_TENANT_ID:
        return None
    return Flaw(
        field="spec.tenantID",
        value=shown(spec.tenant_id),
        allowed="any tenant but that of the self-test",
    )


def _shadow(
    objects: Sequence[ResourceObject[CacheTenantSpec]], _load: LoadState
) -> Iterator[tuple[ObjectKey, ObjectState] | None]:
    """Name the objects whose tenant another object speaks for."""
    in_force = tenants_in_force(objects)
    for count, found in enumerate(objects):
        if not count % SLICE_OBJECTS:
            yield None
        counting = in_force[found.spec.tenant_id].key
        if counting != found.key:
            yield (
                found.key,
                ObjectState(
                    StateName.SHADOWED,
                    "DuplicateTenantID",
                    f"{counting.namespace}/{counting.name} comes first for the same tenant "
                    "and is the one in force",
                ),
            )


CACHE_TENANT: Final = ResourceKind(
    kind="CacheTenant",
    plural="cachetenants",
    short_names=("ct",),
    description="A tenant and how much of the index it may hold. Of several for one tenant the "
    "first with a quota, by namespace and name, is in force.",
    spec=CacheTenantSpec,
    status=CacheTenantStatus,
    columns=(
        Column(
            name="Tenant",
            type="string",
            path=".spec.tenantID",
            description="The tenant, as reports and lookups name it.",
        ),
        Column(
            name="Quota",
            type="integer",
            path=".spec.quota.maxIndexEntries",
            description="Most distinct prefixes it may hold.",
        ),
        AGE,
    ),
    rules=(
        Rule(
            path="spec.tenantID",
            cel=f"self != '{PROBE_TENANT_ID}'",
            message=f"{PROBE_TENANT_ID} is reserved for the self-test",
            check=_check_tenant_id,
        ),
    ),
    assess=_shadow,
)
