"""Pickers in this process: with two plugins, or with the prefix signal on.

Everything in them is what a server has, with default limits and debug records on; only the fleet of
the second is made here instead of read from files.
"""

import random
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.measure import require
from benchmarks.prompt_texts import Texts, chat_body
from benchmarks.workload import BLOCK_TOKENS, SCHEME, SEED, TENANT
from inferencecache.app.picker import Picker, PickerParts
from inferencecache.app.picker_plugins import PickerPluginParts, PickerPlugins
from inferencecache.app.picker_prefix import PickerPrefix, PickerPrefixParts
from inferencecache.app.picker_prompt import PickerPrompts
from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.index import PrefixIndex, StateUpdate
from inferencecache.picker.bodies import Rope
from inferencecache.picker.choice import Question
from inferencecache.picker.choosing import fleet_index
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
from inferencecache.picker.prefix.sightings import Sightings
from inferencecache.picker.prompt import PromptBlocks
from inferencecache.picker.request import parse_body
from inferencecache.policy import PolicyStore
from inferencecache.service import CachePlane, PlaneParts
from inferencecache.settings.picker import PickerParseSettings, PickerSettings
from inferencecache.settings.picker_prompt import PickerPromptSettings
from inferencecache.settings.server import ServerSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.transport.prometheus import ServerMetrics
from inferencecache.transport.structured_log import StructuredLog
from inferencecache.transport.system_clock import SystemClock

PLUGINS: Final = """
apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
plugins:
  - type: inflight-load-producer
  - type: token-load-scorer
"""
"""A producer, and a scorer of what it finds out."""

ENDPOINTS: Final = ",".join(f"m=10.0.0.{number}:8000" for number in range(1, 9))
ENGINES: Final = 16

_DEPTHS: Final = 4
_CHAT_TURNS: Final = 12
_TURN_WORDS: Final = 170
_PROMPT: Final = PickerPromptSettings(timeout_ns=60 * NS_PER_S)
"""A machine that is busy must not turn a Pick by tokens into one by characters."""


def ten_kb_chat() -> bytes:
    """Return a chat of about 10 KB, always the same."""
    texts = Texts(random.Random(SEED))
    return chat_body([texts.of(_TURN_WORDS) for _ in range(_CHAT_TURNS)])


def plugged_picker(ttl_ms: int) -> Picker:
    """Return a picker with two plugins and eight endpoints.

    Args:
        ttl_ms: How long bodies and decisions wait.
    """
    settings = throwaway_server_settings()
    parts = _parts(settings, ttl_ms)
    with TemporaryDirectory() as directory:
        file = Path(directory) / "plugins.yaml"
        file.write_text(PLUGINS, encoding="utf-8")
        plugins = PickerPlugins(
            PickerPluginParts(
                settings=replace(settings.picker_plugins, config_file=str(file)),
                resources=settings.resources,
                clock=parts.clock,
                log=parts.log,
                log_interval_ns=settings.grpc.failure_log_interval_ns,
            )
        )
    limits = replace(parts.settings, endpoints=ENDPOINTS)
    return Picker(replace(parts, settings=limits, director=plugins.director))


class SignalledPicker:
    """A picker that knows where prompts are warm, by an index in this process.

    Args:
        directory: Where the engines' tokenizer is.
        ttl_ms: How long bodies and decisions wait.

    Attributes:
        picker: It.
        prefix: Its signal.
        engines: Its fleet.
    """

    def __init__(self, directory: Path, ttl_ms: int) -> None:
        settings = throwaway_server_settings()
        parts = _parts(settings, ttl_ms)
        policies = PolicyStore(settings.policy, default_ttl_ns=settings.index.ttl_ns)
        sightings = Sightings(settings.picker_prefix.replicas_max)
        self._plane = CachePlane(
            PlaneParts(
                index=PrefixIndex(settings.index, policies),
                policies=policies,
                clock=parts.clock,
                replicas=sightings,
            )
        )
        self.prefix = PickerPrefix(
            PickerPrefixParts(
                settings=settings.picker_prefix,
                prompt=_PROMPT,
                index=settings.picker_index,
                clock=parts.clock,
                log=parts.log,
                plane=self._plane,
                sightings=sightings,
                labels_max=settings.metrics.labels_max,
            )
        )
        self.engines = _engines(str(directory))
        self.picker = Picker(replace(parts, prefix=self.prefix, on_members=self.prefix.adopt))
        self._log = parts.log

    async def start(self) -> None:
        """Begin, and let the index hear of every engine."""
        self.picker.fleet.install(fleet_index(_fleet(self.engines)))
        await self.prefix.start()
        for endpoint in self.engines.endpoints:
            self._plane.report(_update(endpoint))

    async def warm(self, body: bytes) -> None:
        """Let every engine hold some of the prompt of *body*: a quarter, a half, or more of it."""
        prompts = PickerPrompts(_PROMPT, SystemClock(), self._log)
        question = Question(request=parse_body(body, PickerParseSettings()), content=Rope([body]))
        blocks = await prompts.reader.blocks(question, self.engines, self.engines.models[0])
        await prompts.stop()
        if not isinstance(blocks, PromptBlocks):
            raise TypeError(blocks)
        hashes = [blocks.hashes[at : at + 8] for at in range(0, len(blocks.hashes), 8)]
        require(len(hashes) >= _DEPTHS, "the prompt has blocks for everybody")
        for number, endpoint in enumerate(self.engines.endpoints):
            held = hashes[: len(hashes) * (number % _DEPTHS + 1) // _DEPTHS]
            update = _update(endpoint)
            update.add_chain(held, [BLOCK_TOKENS] * len(held))
            self._plane.report(update)

    async def stop(self) -> None:
        """End it."""
        await self.picker.stop(0)
        await self.prefix.stop()


def _parts(settings: ServerSettings, ttl_ms: int) -> PickerParts:
    policies = PolicyStore(settings.policy, default_ttl_ns=settings.index.ttl_ns)
    clock = SystemClock()
    ttl_ns = ttl_ms * NS_PER_MS
    return PickerParts(
        settings=PickerSettings(
            body_ttl_ns=ttl_ns,
            unpulled_ttl_ns=ttl_ns,
            decision_ttl_ns=ttl_ns,
            buffered_bytes_max=2 * 1_024**3,
        ),
        parse=PickerParseSettings(),
        port=settings.grpc,
        metrics=settings.metrics,
        clock=clock,
        observer=ServerMetrics(settings.metrics, PrefixIndex(settings.index, policies), clock),
        log=StructuredLog(),
    )


def _engines(tokenizer: str) -> WorkerSet:
    return WorkerSet(
        key=ObjectName(namespace="default", name="engines"),
        models=(ModelRow(name="m"),),
        endpoints=tuple(
            Endpoint(name=f"engine-{number}", address=f"10.0.0.{number + 1}:8000")
            for number in range(ENGINES)
        ),
        engine=EngineKind.VLLM,
        block_size_tokens=BLOCK_TOKENS,
        hash_scheme=SCHEME,
        index_tenant=TENANT,
        tokenizer=tokenizer,
        chat_template="",
        priors=PriorsForEngine(prefill_tokens_per_s=8_000, base_ttft_ms=50, concurrency_max=64),
    )


def _fleet(engines: WorkerSet) -> Fleet:
    tier = Tier(
        name="local",
        rank_by=RankBy.ESTIMATED_TTFT,
        profile="",
        members=(engines,),
        saturation_max=1.0,
    )
    return Fleet(everything=Pool(key=ObjectName(namespace="", name=""), tiers=(tier,)))


def _update(endpoint: Endpoint) -> StateUpdate:
    return StateUpdate(tenant_id=TENANT, model_id="m", replica_id=endpoint.name, hash_scheme=SCHEME)
