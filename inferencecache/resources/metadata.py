"""The metadata of any object: what is needed of it, and what a cluster adds to it."""

from typing import Annotated, Any, Final

from msgspec import Meta

from inferencecache.resources.models import ResourceModel

LABEL_PATTERN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
NAME_PATTERN: Final = rf"^{LABEL_PATTERN}(\.{LABEL_PATTERN})*\Z"
NAMESPACE_PATTERN: Final = rf"^{LABEL_PATTERN}\Z"
DEFAULT_NAMESPACE: Final = "default"

Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=NAME_PATTERN,
        description="Name of the object, unique in its namespace for its kind.",
        extra_json_schema={"example": "default"},
    ),
]
Namespace = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=63,
        pattern=NAMESPACE_PATTERN,
        description=f"Namespace of the object; {DEFAULT_NAMESPACE} if it is not given.",
        extra_json_schema={"example": "team-a"},
    ),
]


class ObjectMeta(ResourceModel, frozen=True, kw_only=True):
    """Names an object; what a cluster adds when it returns one is accepted and ignored."""

    name: Name
    namespace: Namespace | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: Any = None
    deletion_grace_period_seconds: Any = None
    deletion_timestamp: Any = None
    finalizers: Any = None
    generate_name: Any = None
    generation: Any = None
    managed_fields: Any = None
    owner_references: Any = None
    resource_version: Any = None
    self_link: Any = None
    uid: Any = None
