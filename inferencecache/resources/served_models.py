"""What worker sets and providers both say about the models that they serve."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta

from inferencecache.resources.flaw import Flaw, shown
from inferencecache.types import INT32_MAX

MODELS_MAX: Final = 1_024
ALIASES_MAX: Final = 256
MODEL_CHARS_MAX: Final = 1_024

ModelName = Annotated[
    str,
    Meta(
        max_length=MODEL_CHARS_MAX,
        description="What the member itself calls the model; written into bodies as it stands.",
        extra_json_schema={"example": "Qwen/Qwen2.5-32B-Instruct"},
    ),
]
AliasName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MODEL_CHARS_MAX,
        description="A name by which clients reach the model, too.",
        extra_json_schema={"example": "qwen-2.5"},
    ),
]
Aliases = Annotated[
    list[AliasName],
    Meta(max_length=ALIASES_MAX, description="Names by which clients reach it, too."),
]
ContextWindow = Annotated[
    int,
    Meta(
        ge=1,
        le=INT32_MAX,
        description="Most tokens of prompt and answer together; any number if left out.",
        extra_json_schema={"format": "int32", "example": 32768},
    ),
]

NAMED_MODELS: Final[dict[str, dict[str, Any]]] = {
    "spec.models": {"minItems": 1},
    "spec.models[]": {"required": ["name"]},
    "spec.models[].name": {"minLength": 1},
}
"""What a cluster demands of models; the loader takes less and calls the object Incomplete."""


def repeated(names: Iterable[str | None]) -> tuple[int, str] | None:
    """Return place and text of the first name that stands there before; None if none does.

    Args:
        names: An empty or missing name counts as none.
    """
    seen: set[str] = set()
    for place, name in enumerate(names):
        if name and name in seen:
            return place, name
        seen.add(name or "")
    return None


def repeated_model(names: Sequence[str | None]) -> Flaw | None:
    """Return what is wrong if two rows name one model.

    Args:
        names: The name in each row.
    """
    found = repeated(names)
    if found is None:
        return None
    return Flaw(
        field=f"spec.models[{found[0]}].name", value=shown(found[1]), allowed="each model once"
    )
