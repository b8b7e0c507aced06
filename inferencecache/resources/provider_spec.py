"""What an InferenceProvider asks for."""

import re
from typing import Annotated, Final

from msgspec import Meta

from inferencecache.resources.flaw import Flaw, shown
from inferencecache.resources.metadata import LABEL_PATTERN
from inferencecache.resources.models import Conditions, ObservedGeneration, ResourceModel, StateText
from inferencecache.resources.served_models import (
    MODELS_MAX,
    Aliases,
    ContextWindow,
    ModelName,
    repeated_model,
)

SUPPORTED_API: Final = "OpenAI"
BACKEND_GROUP: Final = "gateway.linkerd.io"
BACKEND_KIND: Final = "GatewayBackend"

_NAME_PATTERN: Final = rf"^({LABEL_PATTERN}(\.{LABEL_PATTERN})*)?\Z"
_NAMESPACE_PATTERN: Final = rf"^({LABEL_PATTERN})?\Z"
_PATH_PATTERN: Final = r'^[!"$-\[\]-~]*\Z'
_NO_PATH: Final = r"^(//|[A-Za-z][A-Za-z0-9+.-]*:|([^?]*/)?(\.|%2[Ee]){1,2}([/?]|$))"
"""What begins with a host or a scheme, or has a segment of one or two dots before its query."""

PATH_CEL: Final = f"!self.matches(r'{_NO_PATH}')"
PATH_ALLOWED: Final = (
    "a path, without a scheme, a host, and segments of one or two dots, for example '/v1/chat'"
)


class BackendRefSpec(ResourceModel, frozen=True, kw_only=True):
    """Points to what callers resolve: address, credentials and TLS of the provider."""

    group: (
        Annotated[
            str,
            Meta(
                max_length=253,
                pattern=_NAME_PATTERN,
                description="API group of the backend.",
                extra_json_schema={"default": BACKEND_GROUP},
            ),
        ]
        | None
    ) = None
    kind: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=63,
                description="Kind of the backend.",
                extra_json_schema={"default": BACKEND_KIND},
            ),
        ]
        | None
    ) = None
    name: (
        Annotated[
            str,
            Meta(
                max_length=253,
                pattern=_NAME_PATTERN,
                description="Name of the backend.",
                extra_json_schema={"example": "databricks"},
            ),
        ]
        | None
    ) = None
    namespace: (
        Annotated[
            str,
            Meta(
                max_length=63,
                pattern=_NAMESPACE_PATTERN,
                description="Namespace of the backend; the provider's own if left out. Another "
                "one needs a ReferenceGrant there.",
                extra_json_schema={"example": "team-a"},
            ),
        ]
        | None
    ) = None


class ProviderModelSpec(ResourceModel, frozen=True, kw_only=True):
    """A model that the provider serves."""

    name: ModelName | None = None
    aliases: Aliases | None = None
    context_window: ContextWindow | None = None


class InferenceProviderSpec(ResourceModel, frozen=True, kw_only=True):
    """A provider outside of the cluster, and what it serves."""

    backend_ref: BackendRefSpec | None = None
    api: (
        Annotated[
            str,
            Meta(max_length=63, description=f"Wire format; only {SUPPORTED_API} is picked."),
        ]
        | None
    ) = None
    models: (
        Annotated[
            list[ProviderModelSpec],
            Meta(max_length=MODELS_MAX, description="What the provider serves, each model once."),
        ]
        | None
    ) = None
    path: (
        Annotated[
            str,
            Meta(
                max_length=2_048,
                pattern=_PATH_PATTERN,
                description="Takes the place of the client's path, with a slash put in front if it "
                "has none; left out or empty keeps that.",
                extra_json_schema={"example": "/serving-endpoints/vllm-endpoint/invocations"},
            ),
        ]
        | None
    ) = None


class InferenceProviderStatus(ResourceModel, frozen=True, kw_only=True):
    """What became of a provider."""

    state: StateText | None = None
    observed_generation: ObservedGeneration | None = None
    conditions: Conditions | None = None


def check_path(spec: InferenceProviderSpec) -> Flaw | None:
    """Return what is wrong if the path leads to another host, or out of its directory."""
    if spec.path is None or re.match(_NO_PATH.replace("$", r"\Z"), spec.path) is None:
        return None
    return Flaw(field="spec.path", value=shown(spec.path), allowed=PATH_ALLOWED)


def check_models(spec: InferenceProviderSpec) -> Flaw | None:
    """Return what is wrong if two rows name one model."""
    return repeated_model([row.name for row in spec.models or ()])
