"""The simulated engines as the picker knows them: a pool of one tier, and how it is ranked."""

from typing import Final

from inferencecache.app.replay_plane import HASH_SCHEME
from inferencecache.clock import NS_PER_MS
from inferencecache.picker.fleet import (
    Endpoint,
    EngineKind,
    Fleet,
    ModelRow,
    ObjectName,
    Pool,
    PriorsForEngine,
    RankBy,
    Tier,
    WorkerSet,
)
from inferencecache.settings.simulate import SimulateSettings
from inferencecache.simulation import TRACE_BLOCK_TOKENS

MODEL: Final = "simulated"
TENANT: Final = "simulation"
PROFILE: Final = "weighted"

_NAMESPACE: Final = "simulation"
_PORT: Final = 8_000
_SATURATION_MAX: Final = 1.0


def engine_name(number: int) -> str:
    """Return the name of an engine in the index."""
    return f"engine-{number}"


def engine_address(number: int) -> str:
    """Return the address of an engine; nobody connects to it."""
    return f"{engine_name(number)}.invalid:{_PORT}"


def simulated_fleet(settings: SimulateSettings, rank_by: RankBy) -> Fleet:
    """Return the engines as a fleet whose beliefs about them are right.

    Args:
        settings: How many, and how fast.
        rank_by: How the picker puts them in order.
    """
    members = WorkerSet(
        key=ObjectName(namespace=_NAMESPACE, name="engines"),
        models=(ModelRow(name=MODEL),),
        endpoints=tuple(
            Endpoint(name=engine_name(number), address=engine_address(number))
            for number in range(settings.engines)
        ),
        engine=EngineKind.VLLM,
        block_size_tokens=TRACE_BLOCK_TOKENS,
        hash_scheme=HASH_SCHEME,
        index_tenant=TENANT,
        tokenizer="",
        chat_template="",
        priors=PriorsForEngine(
            prefill_tokens_per_s=settings.prefill_tokens_per_s,
            base_ttft_ms=settings.base_ttft_ns / NS_PER_MS,
            concurrency_max=settings.concurrency_max,
        ),
    )
    tier = Tier(
        name="local",
        rank_by=rank_by,
        profile=PROFILE if rank_by is RankBy.PROFILE else "",
        members=(members,),
        saturation_max=_SATURATION_MAX,
    )
    key = ObjectName(namespace=_NAMESPACE, name="")
    return Fleet(everything=Pool(key=key, tiers=(tier,)))
