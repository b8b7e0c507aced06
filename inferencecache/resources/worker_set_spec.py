"""What an InferenceWorkerSet asks for."""

from typing import Annotated, Literal

from msgspec import Meta

from inferencecache.resources.endpoints_file import (
    FILE_PATTERN,
    METRICS_URL_PATTERN,
    Endpoints,
    endpoints_flaw,
)
from inferencecache.resources.flaw import Flaw, shown
from inferencecache.resources.models import (
    Conditions,
    ObservedGeneration,
    ResourceModel,
    StateText,
)
from inferencecache.resources.served_models import (
    MODELS_MAX,
    Aliases,
    ContextWindow,
    ModelName,
    repeated_model,
)
from inferencecache.types import INT32_MAX


class WorkerModelSpec(ResourceModel, frozen=True, kw_only=True):
    """A model that each worker serves."""

    name: ModelName | None = None
    aliases: Aliases | None = None
    context_window: ContextWindow | None = None
    adapter_of: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=1_024,
                description="For a LoRA adapter, the name of its base model in the same set.",
            ),
        ]
        | None
    ) = None


class PriorsSpec(ResourceModel, frozen=True, kw_only=True):
    """What is believed of an engine before anything was measured."""

    prefill_tokens_per_second: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=INT32_MAX,
                description="How fast it reads a prompt; --fleet-prefill-tokens-per-second if "
                "left out.",
            ),
        ]
        | None
    ) = None
    base_ttft_ms: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=600_000,
                description="Time to the first token of an empty prompt while it idles; "
                "--fleet-base-ttft if left out.",
            ),
        ]
        | None
    ) = None
    max_concurrency: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=INT32_MAX,
                description="Most requests that it works on at once; --fleet-max-concurrency "
                "if left out.",
            ),
        ]
        | None
    ) = None


class InferenceWorkerSetSpec(ResourceModel, frozen=True, kw_only=True):
    """Engines that serve the same models."""

    models: (
        Annotated[
            list[WorkerModelSpec],
            Meta(max_length=MODELS_MAX, description="What each worker serves, each model once."),
        ]
        | None
    ) = None
    endpoints: Endpoints | None = None
    endpoints_file: (
        Annotated[
            str,
            Meta(
                max_length=253,
                pattern=FILE_PATTERN,
                description="A file beside this one that lists the endpoints, instead of them.",
                extra_json_schema={"example": "llama.endpoints.yaml"},
            ),
        ]
        | None
    ) = None
    engine: (
        Annotated[
            Literal["vllm", "sglang", "trtllm"],
            Meta(
                description="Which engine they run.",
                extra_json_schema={"default": "vllm"},
            ),
        ]
        | None
    ) = None
    metrics_url: (
        Annotated[
            str,
            Meta(
                max_length=2_048,
                pattern=METRICS_URL_PATTERN,
                description="Each worker's page of metrics, without user and query; {address} "
                "stands for host and port, {host} for the host alone. None is read if left out.",
                extra_json_schema={"example": "http://{address}/metrics"},
            ),
        ]
        | None
    ) = None
    block_size_tokens: (
        Annotated[int, Meta(ge=1, le=65_536, description="Tokens in a block of their caches.")]
        | None
    ) = None
    hash_scheme: (
        Annotated[
            str,
            Meta(
                max_length=253,
                description="Under which the index knows their blocks; the engine's name if "
                "left out.",
            ),
        ]
        | None
    ) = None
    index_tenant: (
        Annotated[
            str,
            Meta(
                max_length=253,
                description="The tenant in whose partitions their blocks are; each caller's own "
                "if left out.",
                extra_json_schema={"example": "team-a"},
            ),
        ]
        | None
    ) = None
    tokenizer: (
        Annotated[
            str,
            Meta(
                max_length=4_096,
                description="Directory of their tokenizer; prompts are hashed by character if "
                "left out.",
                extra_json_schema={"example": "/models/llama/tokenizer"},
            ),
        ]
        | None
    ) = None
    chat_template: (
        Annotated[
            str,
            Meta(
                max_length=4_096,
                description="File with their chat template; the tokenizer's own if left out.",
            ),
        ]
        | None
    ) = None
    tokenize_url: (
        Annotated[
            str,
            Meta(
                max_length=2_048,
                pattern=METRICS_URL_PATTERN,
                description="Where each worker tokenizes, without user and query; {address} stands "
                "for host and port, {host} for the host alone. Prompts are sent there where "
                "no tokenizer can be read here; nowhere if left out.",
                extra_json_schema={"example": "http://{address}/tokenize"},
            ),
        ]
        | None
    ) = None
    priors: PriorsSpec | None = None
    prefix: (
        Annotated[
            Literal["auto", "precise", "approximate", "none"],
            Meta(
                description="By what is known where they are warm: by the index, by what went "
                "where, or by nothing. auto is by the index once it has heard of one of them, or "
                "if block size, hash scheme, tenant or tokenizer are given here.",
                extra_json_schema={"default": "auto"},
            ),
        ]
        | None
    ) = None


class InferenceWorkerSetStatus(ResourceModel, frozen=True, kw_only=True):
    """What became of a worker set."""

    state: StateText | None = None
    endpoints: Annotated[int, Meta(ge=0, description="How many workers there are.")] | None = None
    observed_generation: ObservedGeneration | None = None
    conditions: Conditions | None = None


def check_models(spec: InferenceWorkerSetSpec) -> Flaw | None:
    """Return what is wrong if a model is named twice, or an adapter's base is not there."""
    rows = spec.models or []
    bases = {row.name for row in rows if row.adapter_of is None}
    for place, row in enumerate(rows):
        if row.adapter_of is not None and row.adapter_of not in bases:
            return Flaw(
                field=f"spec.models[{place}].adapterOf",
                value=shown(row.adapter_of),
                allowed="the name of a model of this set that is no adapter itself",
            )
    return repeated_model([row.name for row in rows])


def check_endpoints(spec: InferenceWorkerSetSpec) -> Flaw | None:
    """Return what is wrong with the endpoints, the first thing only."""
    return endpoints_flaw(spec.endpoints or [])


def check_sources(spec: InferenceWorkerSetSpec) -> Flaw | None:
    """Return what is wrong if the endpoints come from two places."""
    if spec.endpoints is None or spec.endpoints_file is None:
        return None
    return Flaw(
        field="spec.endpointsFile",
        value=shown(spec.endpoints_file),
        allowed="nothing while there are endpoints",
    )
