"""ReferenceGrant: who may refer to what stands in another namespace, as the Gateway API has it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta

from inferencecache.resources.kind import ResourceKind
from inferencecache.resources.metadata import LABEL_PATTERN, NAMESPACE_PATTERN
from inferencecache.resources.model import ResourceObject
from inferencecache.resources.models import ResourceModel

_GROUP_PATTERN: Final = rf"^({LABEL_PATTERN}(\.{LABEL_PATTERN})*)?\Z"

GroupName = Annotated[
    str,
    Meta(
        max_length=253,
        pattern=_GROUP_PATTERN,
        description="API group; empty for the core group.",
        extra_json_schema={"example": "gateway.linkerd.io"},
    ),
]
KindName = Annotated[
    str, Meta(min_length=1, max_length=63, description="Kind, GatewayBackend for example.")
]


class GrantFromSpec(ResourceModel, frozen=True, kw_only=True):
    """Who may refer."""

    group: GroupName
    kind: KindName
    namespace: Annotated[
        str,
        Meta(
            max_length=63,
            pattern=NAMESPACE_PATTERN,
            description="Where they stand.",
            extra_json_schema={"example": "team-a"},
        ),
    ]


class GrantToSpec(ResourceModel, frozen=True, kw_only=True):
    """What may be referred to in the grant's namespace."""

    group: GroupName
    kind: KindName
    name: (
        Annotated[str, Meta(max_length=253, description="Only this one; any if left out.")] | None
    ) = None


class ReferenceGrantSpec(ResourceModel, frozen=True, kw_only=True):
    """Every one of the first may refer to every one of the second."""

    from_: Annotated[
        list[GrantFromSpec], Meta(min_length=1, max_length=64, description="Who may refer.")
    ]
    to: Annotated[
        list[GrantToSpec], Meta(min_length=1, max_length=64, description="To what, here.")
    ]


class ReferenceGrantStatus(ResourceModel, frozen=True, kw_only=True):
    """Written by nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What an object refers to in another namespace.

    Attributes:
        from_group: Group of the object.
        from_kind: Its kind.
        from_namespace: Where it stands.
        group: Group of what it refers to.
        kind: Its kind.
        namespace: Where that stands.
        name: Its name.
    """

    from_group: str
    from_kind: str
    from_namespace: str
    group: str
    kind: str
    namespace: str
    name: str


class Grants:
    """All grants.

    Args:
        objects: Every ReferenceGrant.

    Complexity: O(objects) to build; a question costs O(grants in the namespace).
    """

    def __init__(self, objects: Iterable[ResourceObject[ReferenceGrantSpec]]) -> None:
        self._by_namespace: dict[str, list[ReferenceGrantSpec]] = {}
        for found in objects:
            self._by_namespace.setdefault(found.key.namespace, []).append(found.spec)

    def allow(self, reference: Reference) -> bool:
        """Tell whether a grant allows *reference*."""
        return any(
            any(_is_from(entry, reference) for entry in grant.from_)
            and any(_is_to(entry, reference) for entry in grant.to)
            for grant in self._by_namespace.get(reference.namespace, ())
        )


def _is_from(entry: GrantFromSpec, reference: Reference) -> bool:
    return (entry.group, entry.kind, entry.namespace) == (
        reference.from_group,
        reference.from_kind,
        reference.from_namespace,
    )


def _is_to(entry: GrantToSpec, reference: Reference) -> bool:
    return (
        entry.group == reference.group
        and entry.kind == reference.kind
        and entry.name in {None, "", reference.name}
    )


REFERENCE_GRANT: Final = ResourceKind(
    kind="ReferenceGrant",
    plural="referencegrants",
    short_names=("refgrant",),
    description="Lets objects of other namespaces refer to objects of this one.",
    spec=ReferenceGrantSpec,
    status=ReferenceGrantStatus,
    group="gateway.networking.k8s.io",
    version="v1beta1",
    other_api_versions=("gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1alpha2"),
    is_foreign=True,
)
