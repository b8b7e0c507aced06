"""InferenceWorkerSet: engines in the cluster that serve the same models."""

from typing import Final

from inferencecache.resources.kind import AGE, Column, ResourceKind, Rule
from inferencecache.resources.member_states import PROVIDER_GROUP, WORKER_SET, worker_set_states
from inferencecache.resources.served_models import NAMED_MODELS
from inferencecache.resources.worker_set_spec import (
    InferenceWorkerSetSpec,
    InferenceWorkerSetStatus,
    check_endpoints,
    check_models,
    check_sources,
)

INFERENCE_WORKER_SET: Final = ResourceKind(
    kind=WORKER_SET,
    plural="inferenceworkersets",
    short_names=("infws",),
    description="Engines that serve the same models, with what is known about them.",
    spec=InferenceWorkerSetSpec,
    status=InferenceWorkerSetStatus,
    columns=(
        Column(
            name="Engine", type="string", path=".spec.engine", description="Which engine it is."
        ),
        Column(
            name="Endpoints",
            type="integer",
            path=".status.endpoints",
            description="How many workers there are.",
        ),
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
    ),
    rules=(
        Rule(path="spec.models", cel="", message="", check=check_models),
        Rule(path="spec.endpoints", cel="", message="", check=check_endpoints),
        Rule(
            path="spec",
            cel="!(has(self.endpoints) && has(self.endpointsFile))",
            message="endpoints and endpointsFile exclude each other",
            check=check_sources,
        ),
    ),
    assess=worker_set_states,
    other_api_versions=(f"{PROVIDER_GROUP}/v1alpha1",),
    admission={"spec": {"required": ["models"]}, **NAMED_MODELS},
)
