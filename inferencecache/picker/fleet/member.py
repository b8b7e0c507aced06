"""Members of pools: sets of engine workers, and providers outside of the cluster.

Everything here is as configured, never changes, and holds no secret: a provider is a reference
that callers resolve.
"""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ObjectName:
    """Where an object stands.

    Attributes:
        namespace: Never empty.
        name: Its name there.
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class EngineKind(StrEnum):
    """Which engine a worker set runs; names metrics and ways to tokenize."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"


class EndpointRole(StrEnum):
    """Which part of a request an endpoint does."""

    BOTH = "both"
    PREFILL = "prefill"
    DECODE = "decode"


class PrefixUse(StrEnum):
    """By what is known where the workers of a set are warm."""

    AUTO = "auto"
    """By the index once it has heard of one of them, or if the set says how to ask it; else by what
    went where."""
    PRECISE = "precise"
    """By the index; without it something is missing."""
    APPROXIMATE = "approximate"
    """By what went where; the index is not asked."""
    NONE = "none"
    """By nothing, and nothing is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """A model that a member serves.

    Attributes:
        name: What the member itself calls it; written into bodies as it stands.
        aliases: Names by which clients reach it, too.
        context_window: Most tokens of prompt and answer together; None if not declared.
        adapter_of: For a LoRA adapter, the name of its base model in the same set; else empty.
    """

    name: str
    aliases: tuple[str, ...] = ()
    context_window: int | None = None
    adapter_of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One engine worker.

    Attributes:
        name: Its name, the replica_id under which the index knows it.
        address: ``host:port``, an IPv6 address in brackets.
        labels: For filters and scorers.
        weight: Its share of the load beside others, above 0.
        role: Which part of a request it does.
        metrics_url: Its page of metrics; empty if it is not read.
    """

    name: str
    address: str
    labels: tuple[tuple[str, str], ...] = ()
    weight: float = 1.0
    role: EndpointRole = EndpointRole.BOTH
    metrics_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorsForEngine:
    """What is believed of an engine before anything was measured.

    Attributes:
        prefill_tokens_per_s: Above 0.
        base_ttft_ms: Time to the first token of an empty prompt on an idle engine.
        concurrency_max: Requests that it works on at once.
    """

    prefill_tokens_per_s: float
    base_ttft_ms: float
    concurrency_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSet:
    """Engines that serve the same models.

    Attributes:
        key: Its namespace and name.
        models: What each of its endpoints serves.
        endpoints: Its workers, each name and address once.
        engine: Which engine they run.
        block_size_tokens: Tokens per cache block; None if unknown.
        hash_scheme: Under which the index knows its blocks; empty for the engine's name.
        index_tenant: The tenant in whose partitions its blocks are; empty for the caller's.
        tokenizer: Directory of its tokenizer; empty if there is none.
        chat_template: File with its chat template; empty for the tokenizer's own.
        tokenize_url: Where its workers tokenize, ``{address}`` and ``{host}`` not yet filled in;
            empty if they are not asked.
        priors: What is believed before anything was measured.
        prefix: By what is known where they are warm.
        generation: Changes when the object does.
    """

    key: ObjectName
    models: tuple[ModelRow, ...]
    endpoints: tuple[Endpoint, ...]
    engine: EngineKind
    block_size_tokens: int | None
    hash_scheme: str
    index_tenant: str
    tokenizer: str
    chat_template: str
    priors: PriorsForEngine
    tokenize_url: str = ""
    prefix: PrefixUse = PrefixUse.AUTO
    generation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider outside of the cluster, reached through a backend that callers resolve.

    Attributes:
        key: Its namespace and name.
        backend: Namespace and name of its backend.
        models: What it serves.
        path: Takes the place of the client's path; empty leaves that.
        generation: Changes when the object does.
    """

    key: ObjectName
    backend: ObjectName
    models: tuple[ModelRow, ...]
    path: str = ""
    generation: str = ""


Member = WorkerSet | Provider
"""Something that serves models."""
