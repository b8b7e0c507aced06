"""From objects to the fleet that a picker picks from.

Only worker sets and providers in state Accepted are picked; whatever a pool names beside them is
left out of it. What an object leaves unsaid the settings say.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Protocol

import msgspec

from inferencecache.clock import NS_PER_MS
from inferencecache.picker.fleet import (
    ContextOverflow,
    Endpoint,
    EndpointRole,
    EngineKind,
    Fleet,
    Member,
    ModelRow,
    ObjectName,
    Pool,
    PrefixUse,
    PriorsForEngine,
    Provider,
    Qualifier,
    RankBy,
    Tier,
    WorkerSet,
)
from inferencecache.resources import LoadState, ObjectKey, ResourceObject
from inferencecache.resources.endpoints_file import EndpointSpec, endpoints_in
from inferencecache.resources.inference_pool import INFERENCE_POOL
from inferencecache.resources.inference_provider import INFERENCE_PROVIDER
from inferencecache.resources.inference_worker_set import INFERENCE_WORKER_SET
from inferencecache.resources.member_states import MemberState, backend_of
from inferencecache.resources.metadata import DEFAULT_NAMESPACE
from inferencecache.resources.model_rewrite import MODEL_REWRITE
from inferencecache.resources.picker_policy import PICKER_POLICY
from inferencecache.resources.pool_spec import InferencePoolSpec, TierSpec, member_key, members_of
from inferencecache.resources.provider_spec import InferenceProviderSpec, ProviderModelSpec
from inferencecache.resources.worker_set_spec import (
    InferenceWorkerSetSpec,
    PriorsSpec,
    WorkerModelSpec,
)
from inferencecache.service.picker_rules import policy_of, rewrite_of
from inferencecache.settings.fleet import FleetSettings

LOCAL_TIER = "worker-sets"
PROVIDER_TIER = "providers"
REST_PREFIX = "rest."
"""Begins the names of tiers after a pool's own; no pool can give such a name."""

_SLICE_OBJECTS = 100
_SLICE_ENDPOINTS = 500
_DIGEST_BYTES = 8

Members = Mapping[ObjectKey, Member]


class QualifierSource(Protocol):
    """Knows how members do while they are picked."""

    def qualifiers_of(self, member: Member) -> Iterable[Qualifier]:
        """Return what is to be said of *member*, an accepted one, in any order."""
        ...


def fleet_slices(load: LoadState, settings: FleetSettings) -> Generator[None, None, Fleet]:
    """Return everything that can be picked, giving way between bounded slices.

    Args:
        load: The objects in force.
        settings: What they leave unsaid.

    Complexity: O(n) in objects, endpoints and members of pools.
    """
    members = yield from members_slices(load, settings)
    return (yield from fleet_of_slices(load, members, settings))


def members_slices(
    load: LoadState, settings: FleetSettings
) -> Generator[None, None, dict[ObjectKey, Member]]:
    """Return every member that is accepted, by its object, worker sets first.

    Args:
        load: The objects in force.
        settings: What they leave unsaid.
    """
    members: dict[ObjectKey, Member] = {}
    for count, found in enumerate(INFERENCE_WORKER_SET.objects_in(load), start=1):
        if load.states[found.key].name == MemberState.ACCEPTED:
            members[found.key] = yield from _worker_set_slices(found, load, settings)
        if not count % _SLICE_OBJECTS:
            yield
    for count, provider in enumerate(INFERENCE_PROVIDER.objects_in(load), start=1):
        if load.states[provider.key].name == MemberState.ACCEPTED:
            members[provider.key] = _provider(provider)
        if not count % _SLICE_OBJECTS:
            yield
    return members


def fleet_of_slices(
    load: LoadState, members: Members, settings: FleetSettings
) -> Generator[None, None, Fleet]:
    """Return the fleet of *members*, giving way between bounded slices.

    Args:
        load: The objects in force.
        members: Those of them that are accepted, by their object.
        settings: What they leave unsaid.
    """
    pools: dict[ObjectName, Pool] = {}
    for count, found in enumerate(INFERENCE_POOL.objects_in(load), start=1):
        pool = _pool(found, members, settings)
        pools[pool.key] = pool
        if not count % _SLICE_OBJECTS:
            yield
    everything = ObjectName(namespace=DEFAULT_NAMESPACE, name="")
    yield
    return Fleet(
        pools=pools,
        everything=Pool(
            key=everything,
            tiers=tuple(_default_tiers(members.values(), settings, prefix="")),
            spills_to_providers=settings.spill_to_providers,
        ),
        policies=tuple(
            policy_of(found, generation_of(found)) for found in PICKER_POLICY.objects_in(load)
        ),
        rewrites=tuple(
            rewrite_of(found, generation_of(found)) for found in MODEL_REWRITE.objects_in(load)
        ),
    )


def generation_of(found: ResourceObject[msgspec.Struct]) -> str:
    """Return a text that changes when the spec does."""
    return blake2b(msgspec.json.encode(found.spec), digest_size=_DIGEST_BYTES).hexdigest()


def _name(key: ObjectKey) -> ObjectName:
    return ObjectName(namespace=key.namespace, name=key.name)


def _provider(found: ResourceObject[InferenceProviderSpec]) -> Provider:
    spec = found.spec
    backend = backend_of(spec, found.key.namespace)
    path = spec.path or ""
    return Provider(
        key=_name(found.key),
        backend=ObjectName(namespace=backend.namespace, name=backend.name),
        models=tuple(_rows(spec.models or ())),
        path=path if not path or path.startswith("/") else f"/{path}",
        generation=generation_of(found),
    )


def _rows(rows: Iterable[ProviderModelSpec | WorkerModelSpec]) -> Iterator[ModelRow]:
    """Yield the rows that have a name; an adapter that says no window has that of its base."""
    said = list(rows)
    windows = {row.name: row.context_window for row in said if row.name and not _base_of(row)}
    for row in said:
        if row.name:
            base = _base_of(row)
            window = row.context_window
            yield ModelRow(
                name=row.name,
                aliases=tuple(dict.fromkeys(row.aliases or ())),
                context_window=windows.get(base) if window is None else window,
                adapter_of=base,
            )


def _base_of(row: ProviderModelSpec | WorkerModelSpec) -> str:
    """Return the model whose adapter *row* is, empty if it is none."""
    return (row.adapter_of or "") if isinstance(row, WorkerModelSpec) else ""


def _worker_set_slices(
    found: ResourceObject[InferenceWorkerSetSpec], load: LoadState, settings: FleetSettings
) -> Generator[None, None, WorkerSet]:
    spec = found.spec
    said = spec.endpoints or []
    if spec.endpoints_file is not None:
        said = endpoints_in(load, spec.endpoints_file) or []
    endpoints: list[Endpoint] = []
    for count, endpoint in enumerate(said, start=1):
        endpoints.append(_endpoint(endpoint, spec.metrics_url or ""))
        if not count % _SLICE_ENDPOINTS:
            yield
    return WorkerSet(
        key=_name(found.key),
        models=tuple(_rows(spec.models or ())),
        endpoints=tuple(endpoints),
        engine=EngineKind(spec.engine or EngineKind.VLLM),
        block_size_tokens=spec.block_size_tokens,
        hash_scheme=spec.hash_scheme or "",
        index_tenant=spec.index_tenant or "",
        tokenizer=spec.tokenizer or "",
        chat_template=spec.chat_template or "",
        tokenize_url=spec.tokenize_url or "",
        priors=_priors(spec.priors or PriorsSpec(), settings),
        prefix=PrefixUse(spec.prefix or PrefixUse.AUTO),
        generation=generation_of(found),
    )


def _endpoint(spec: EndpointSpec, metrics_url: str) -> Endpoint:
    host = spec.address.rpartition(":")[0]
    of_set = metrics_url.replace("{address}", spec.address).replace("{host}", host)
    return Endpoint(
        name=spec.name,
        address=spec.address,
        labels=tuple(sorted((spec.labels or {}).items())),
        weight=float(spec.weight or 1),
        role=EndpointRole(spec.role or EndpointRole.BOTH),
        metrics_url=spec.metrics_url or of_set,
    )


def _priors(spec: PriorsSpec, settings: FleetSettings) -> PriorsForEngine:
    ttft_ms = settings.base_ttft_ns / NS_PER_MS if spec.base_ttft_ms is None else spec.base_ttft_ms
    return PriorsForEngine(
        prefill_tokens_per_s=float(spec.prefill_tokens_per_second or settings.prefill_tokens_per_s),
        base_ttft_ms=float(ttft_ms),
        concurrency_max=spec.max_concurrency or settings.concurrency_max,
    )


def _pool(
    found: ResourceObject[InferencePoolSpec], members: Members, settings: FleetSettings
) -> Pool:
    spec, namespace = found.spec, found.key.namespace
    tiers = [_tier(tier, namespace, members, settings) for tier in spec.tiers or ()]
    in_tiers = {id(member) for tier in tiers for member in tier.members}
    rest = (members[key] for key in members_of(spec, namespace) if key in members)
    others = [member for member in rest if id(member) not in in_tiers]
    prefix = REST_PREFIX if tiers else ""
    return Pool(
        key=_name(found.key),
        tiers=(*tiers, *_default_tiers(others, settings, prefix)),
        default_model=spec.default_model or "",
        context_overflow=ContextOverflow(spec.context_overflow or ContextOverflow.LARGEST),
        spills_to_providers=(
            settings.spill_to_providers
            if spec.spill_to_providers is None
            else spec.spill_to_providers
        ),
        resource_version=str(found.metadata.resource_version or ""),
    )


def _tier(spec: TierSpec, namespace: str, members: Members, settings: FleetSettings) -> Tier:
    keys = (member_key(ref, namespace) for ref in spec.members or ())
    percent = spec.max_saturation_percent or settings.saturation_percent_max
    found = tuple(members[key] for key in keys if key in members)
    return Tier(
        name=spec.name,
        rank_by=RankBy(spec.rank_by or RankBy.ESTIMATED_TTFT),
        profile=spec.profile or "",
        members=found,
        saturation_max=percent / 100,
        explores=bool(spec.explore),
        is_rank_default=spec.rank_by is None and not any(map(_is_provider, found)),
    )


def _default_tiers(
    members: Iterable[Member], settings: FleetSettings, prefix: str
) -> Iterator[Tier]:
    """Yield a tier of worker sets and one of providers, those that are not empty.

    Args:
        members: What shall be in them.
        settings: When they are full.
        prefix: Begins their names.
    """
    found = list(members)
    for name, is_provider in ((LOCAL_TIER, False), (PROVIDER_TIER, True)):
        tier = tuple(member for member in found if _is_provider(member) == is_provider)
        if tier:
            yield Tier(
                name=prefix + name,
                rank_by=RankBy.ESTIMATED_TTFT,
                profile="",
                members=tier,
                saturation_max=settings.saturation_percent_max / 100,
                is_rank_default=not is_provider,
            )


def _is_provider(member: Member) -> bool:
    return isinstance(member, Provider)
