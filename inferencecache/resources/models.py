"""What the models of all kinds have in common: how members are named, and that nothing is extra."""

from typing import Annotated, Final

from msgspec import Meta, Struct

_CAPITALS: Final = {"id": "ID", "ttl": "TTL", "ttft": "TTFT", "url": "URL"}


def wire_name(name: str) -> str:
    """Return the name of a member in a document: ``evictionTTL`` for ``eviction_ttl``."""
    first, *rest = name.split("_")
    return first + "".join(_CAPITALS.get(word, word.capitalize()) for word in rest)


class ResourceModel(Struct, frozen=True, forbid_unknown_fields=True, rename=wire_name, gc=False):
    """A part of a document; an optional member is None if it is absent or null."""


ObservedGeneration = Annotated[
    int,
    Meta(
        ge=0,
        description="Generation of the spec that this status is about.",
        extra_json_schema={"format": "int64"},
    ),
]


class Condition(ResourceModel, frozen=True, kw_only=True):
    """One aspect of an object's state, in the usual form."""

    type: Annotated[str, Meta(min_length=1, max_length=316)]
    status: Annotated[str, Meta(extra_json_schema={"enum": ["True", "False", "Unknown"]})]
    reason: Annotated[str, Meta(min_length=1, max_length=1_024)]
    message: Annotated[str, Meta(max_length=32_768)]
    last_transition_time: Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
    observed_generation: ObservedGeneration | None = None


Conditions = Annotated[
    list[Condition],
    Meta(
        description="Aspects of the state, one per type.",
        extra_json_schema={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    ),
]

StateText = Annotated[
    str, Meta(description="What became of the object, then whatever else is to be said of it.")
]
