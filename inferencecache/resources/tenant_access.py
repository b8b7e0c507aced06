"""TenantAccess: which clients may read and write which tenants, by the names in a certificate."""

from typing import Annotated, Final

from msgspec import Meta

from inferencecache.resources.kind import AGE, Column, ResourceKind
from inferencecache.resources.models import Conditions, ObservedGeneration, ResourceModel

_CLIENT_PATTERN: Final = r"^(uri|dns|cn):.+\Z"

ClientName = Annotated[
    str,
    Meta(
        max_length=2_048,
        pattern=_CLIENT_PATTERN,
        description="A name in a client's certificate with its kind in front: uri:, dns: or cn:.",
        extra_json_schema={"example": "uri:spiffe://cluster.local/ns/team-a/sa/gateway"},
    ),
]
TenantName = Annotated[
    str,
    Meta(
        min_length=1,
        description="A tenant; * stands for every tenant.",
        extra_json_schema={"example": "team-a"},
    ),
]


class TenantAccessSpec(ResourceModel, frozen=True, kw_only=True):
    """Grants access; what no object grants is denied."""

    clients: Annotated[
        list[ClientName],
        Meta(
            min_length=1,
            description="Whom this is about: bearers of any of these names.",
        ),
    ]
    read: (
        Annotated[list[TenantName], Meta(description="Tenants they may look up and ask about.")]
        | None
    ) = None
    write: (
        Annotated[
            list[TenantName],
            Meta(description="Tenants they may report and publish events for."),
        ]
        | None
    ) = None


class TenantAccessStatus(ResourceModel, frozen=True, kw_only=True):
    """Written by nobody yet."""

    observed_generation: ObservedGeneration | None = None
    conditions: Conditions | None = None


TENANT_ACCESS: Final = ResourceKind(
    kind="TenantAccess",
    plural="tenantaccesses",
    short_names=("ta",),
    description="Which clients of the gRPC services may read and write which tenants, where every "
    "client shows a certificate. Grants of all objects add up.",
    spec=TenantAccessSpec,
    status=TenantAccessStatus,
    columns=(
        Column(
            name="Clients",
            type="string",
            path=".spec.clients",
            description="Whom it is about.",
        ),
        AGE,
    ),
)
