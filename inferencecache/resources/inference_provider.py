"""InferenceProvider: a provider outside of the cluster that requests can go to."""

from typing import Final

from inferencecache.resources.kind import AGE, Column, ResourceKind, Rule
from inferencecache.resources.member_states import PROVIDER, PROVIDER_GROUP, provider_states
from inferencecache.resources.provider_spec import (
    PATH_ALLOWED,
    PATH_CEL,
    SUPPORTED_API,
    InferenceProviderSpec,
    InferenceProviderStatus,
    check_models,
    check_path,
)
from inferencecache.resources.served_models import NAMED_MODELS

INFERENCE_PROVIDER: Final = ResourceKind(
    kind=PROVIDER,
    plural="inferenceproviders",
    short_names=("infprov",),
    description="An inference provider outside of the cluster: what it serves, and the backend "
    "that callers resolve to reach it.",
    spec=InferenceProviderSpec,
    status=InferenceProviderStatus,
    columns=(
        Column(
            name="Backend",
            type="string",
            path=".spec.backendRef.name",
            description="What callers resolve to reach it.",
        ),
        Column(name="API", type="string", path=".spec.api", description="What it speaks."),
        Column(
            name="State",
            type="string",
            path=".status.state",
            description="What became of it, and what happens to it.",
        ),
        AGE,
        Column(
            name="Models",
            type="string",
            path=".spec.models[*].name",
            description="What it serves.",
            is_wide=True,
        ),
        Column(
            name="Path",
            type="string",
            path=".spec.path",
            description="What takes the place of the client's path.",
            is_wide=True,
        ),
    ),
    rules=(
        Rule(path="spec.models", cel="", message="", check=check_models),
        Rule(path="spec.path", cel=PATH_CEL, message=f"must be {PATH_ALLOWED}", check=check_path),
    ),
    assess=provider_states,
    group=PROVIDER_GROUP,
    admission={
        "spec": {"required": ["backendRef", "api", "models"]},
        "spec.backendRef": {"required": ["name"]},
        "spec.backendRef.name": {"minLength": 1},
        "spec.api": {"enum": [SUPPORTED_API]},
        **NAMED_MODELS,
    },
)
