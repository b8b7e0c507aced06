"""An engine's metrics page, already parsed, to the load signal of a replica.

Theory of operation
-------------------
Engines name the same thing differently from release to release, export one series per scheduler,
rank or priority, and reset counters when they restart. A *profile* lists, per value, the names that
carry it, newest first. Names are compared whole: ``..._created`` beside a counter is a time, not a
count. What a page does not carry is unknown, which is not the same as 0: a value that is None is
left out of the report.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from inferencecache.settings.producer import LoadSettings
from inferencecache.types import StatsReport

_COUNT_MAX: Final = 2.0**62


class EngineKind(StrEnum):
    """Which names a metrics page uses."""

    VLLM = "vllm"
    SGLANG = "sglang"


def engine_kind_of(hash_scheme: str) -> EngineKind:
    """Return the profile for a hash scheme; what is not SGLang's is read as vLLM's."""
    return EngineKind.SGLANG if hash_scheme == EngineKind.SGLANG else EngineKind.VLLM


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One series of a page.

    Attributes:
        name: The series' full name, with ``_total`` if it has one.
        value: Its value.
        labels: Its labels.
        kind: Type of its family: gauge, counter, histogram, unknown.
    """

    name: str
    value: float
    labels: dict[str, str] = field(default_factory=dict)
    kind: str = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterLoad:
    """What one page says of LoRA adapters.

    Attributes:
        running: Those that requests are computed with.
        waiting: Those that queued requests wait for.
        room: How many there can be at once; None if it does not say.
    """

    running: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()
    room: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLoad:
    """What one page says; None is what it does not say.

    Attributes:
        usage_ratio: Used part of the KV cache, 0 to 1.
        running: Requests being computed.
        waiting: Requests queued.
        hit_tokens: Counter of prompt tokens served from the prefix cache.
        query_tokens: Counter of prompt tokens looked up in it.
        hit_rate: Hit ratio as the engine gives it, where it does.
        t2_hit_tokens: Counter of tokens served from the offload tier.
        t2_query_tokens: Counter of tokens looked up there.
        adapters: Its LoRA adapters.
    """

    usage_ratio: float | None = None
    running: float | None = None
    waiting: float | None = None
    hit_tokens: float | None = None
    query_tokens: float | None = None
    hit_rate: float | None = None
    t2_hit_tokens: float | None = None
    t2_query_tokens: float | None = None
    adapters: AdapterLoad | None = None

    @property
    def has_load(self) -> bool:
        """Whether both load gauges were there; without them no report is made."""
        return self.running is not None and self.waiting is not None

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the profile was there: a wrong engine, port or page."""
        return self == EngineLoad()


_GAUGES: Final = frozenset({"gauge"})
_COUNTERS: Final = frozenset({"counter"})
_RANK_LABELS: Final = ("tp_rank", "pp_rank")

_VLLM_USAGE: Final = {
    "auto": ("vllm:kv_cache_usage_perc",),
    "kv": ("vllm:kv_cache_usage_perc",),
    "gpu": ("vllm:gpu_cache_usage_perc",),
    "cpu": ("vllm:cpu_cache_usage_perc",),
}
_VLLM_OLD_USAGE: Final = ("vllm:gpu_cache_usage_perc", "vllm:cpu_cache_usage_perc")
_VLLM_ADAPTERS: Final = "vllm:lora_requests_info"
_LABELS_CHARACTERS_MAX: Final = 65_536
"""Labels longer than this, all together, name no adapters; they are kept for each engine."""
_IS_COUNT: Final = re.compile(r"[0-9]{1,9}")


class PageReader:
    """Looks values up among the samples of one page.

    Args:
        samples: The page.
        model_name: Only series of this model count; empty for all.
    """

    def __init__(self, samples: Iterable[Sample], model_name: str) -> None:
        self._by_name: dict[str, list[Sample]] = {}
        for sample in samples:
            if not math.isfinite(sample.value):
                continue
            if model_name and sample.labels.get("model_name") != model_name:
                continue
            self._by_name.setdefault(sample.name, []).append(sample)

    def ratio(self, *names: str) -> float | None:
        """Return the largest value over the series of the gauges *names*."""
        values = [sample.value for name in names for sample in self._gauges(name)]
        return max(values, default=None)

    def load(self, name: str) -> float | None:
        """Return the sum of a gauge over its series, each queue counted once.

        Series of one priority are parts of another series; tensor- and pipeline-parallel ranks
        of one scheduler show the same queue.
        """
        queues: dict[tuple[tuple[str, str], ...], float] = {}
        for sample in self._gauges(name):
            if sample.labels.get("priority"):
                continue
            queue = tuple(
                sorted(
                    (label, value)
                    for label, value in sample.labels.items()
                    if value and label not in _RANK_LABELS
                )
            )
            queues[queue] = max(sample.value, queues.get(queue, 0.0))
        return sum(queues.values()) if queues else None

    def latest(self, name: str) -> dict[str, str] | None:
        """Return the labels of the series of a gauge whose value, a time, is the highest."""
        newest = max(self._gauges(name), key=lambda sample: sample.value, default=None)
        return None if newest is None else newest.labels

    def counter(self, *names: str) -> float | None:
        """Return the sum over the series of the first counter that is there."""
        for name in names:
            for written in (f"{name}_total", name):
                samples = self._of_kind(written, _COUNTERS)
                if samples:
                    return sum(sample.value for sample in samples)
        return None

    def _gauges(self, name: str) -> list[Sample]:
        return self._of_kind(name, _GAUGES)

    def _of_kind(self, name: str, kinds: frozenset[str]) -> list[Sample]:
        return [sample for sample in self._by_name.get(name, ()) if sample.kind in kinds]


def read_load(kind: EngineKind, samples: Iterable[Sample], settings: LoadSettings) -> EngineLoad:
    """Return what a page says about the engine's load and cache.

    Args:
        kind: Whose names to look for.
        samples: The parsed page; it may be cut off.
        settings: Model filter and choice of the usage gauge.
    """
    return _PROFILES[kind](PageReader(samples, settings.engine_model_name), settings)


def _read_vllm(page: PageReader, settings: LoadSettings) -> EngineLoad:
    usage = page.ratio(*_VLLM_USAGE[settings.cache_tier])
    if usage is None and settings.cache_tier == "auto":
        usage = page.ratio(*_VLLM_OLD_USAGE)
    return EngineLoad(
        usage_ratio=usage,
        running=page.load("vllm:num_requests_running"),
        waiting=page.load("vllm:num_requests_waiting"),
        hit_tokens=page.counter("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
        query_tokens=page.counter("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
        t2_hit_tokens=page.counter("vllm:external_prefix_cache_hits"),
        t2_query_tokens=page.counter("vllm:external_prefix_cache_queries"),
        adapters=_adapters(page.latest(_VLLM_ADAPTERS)),
    )


def _adapters(labels: dict[str, str] | None) -> AdapterLoad | None:
    """Return what vLLM says in labels; each change of them is a series, older ones stay."""
    if labels is None or sum(map(len, labels.values())) > _LABELS_CHARACTERS_MAX:
        return None
    room = labels.get("max_lora", "")
    return AdapterLoad(
        running=_names(labels.get("running_lora_adapters", "")),
        waiting=_names(labels.get("waiting_lora_adapters", "")),
        room=int(room) if _IS_COUNT.fullmatch(room) else None,
    )


def _names(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, text.split(","))))


def _read_sglang(page: PageReader, settings: LoadSettings) -> EngineLoad:
    del settings  # SGLang has one usage gauge
    return EngineLoad(
        usage_ratio=page.ratio("sglang:token_usage"),
        running=page.load("sglang:num_running_reqs"),
        waiting=page.load("sglang:num_queue_reqs"),
        hit_rate=page.ratio("sglang:cache_hit_rate"),
    )


_PROFILES: Final[dict[EngineKind, Callable[[PageReader, LoadSettings], EngineLoad]]] = {
    EngineKind.VLLM: _read_vllm,
    EngineKind.SGLANG: _read_sglang,
}


LOAD_SERIES: Final[dict[EngineKind, frozenset[str]]] = {
    EngineKind.VLLM: frozenset(
        {
            "vllm:num_requests_running",
            "vllm:num_requests_waiting",
            _VLLM_ADAPTERS,
            *(name for names in _VLLM_USAGE.values() for name in names),
        }
    ),
    EngineKind.SGLANG: frozenset(
        {"sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage"}
    ),
}
"""What of a page says how busy an engine is, for those who read nothing else of it."""


class LoadTracker:
    """Turns successive pages into reports; remembers the counters of the last good one.

    Args:
        settings: Sizes and ceilings.
    """

    def __init__(self, settings: LoadSettings) -> None:
        self._settings = settings
        self._baseline: tuple[float, float] | None = None

    def report(self, load: EngineLoad) -> StatsReport | None:
        """Return the report for a page; None when it lacks the load gauges.

        A rate needs two pages: it is 0 on the first, after a counter went back and when nothing
        was looked up in between.
        """
        if load.running is None or load.waiting is None:
            return None
        hit_rate = self._hit_rate(load)
        usage = load.usage_ratio or 0.0
        return StatsReport(
            cache_memory_bytes=_count(usage * self._settings.engine_cache_size_bytes),
            hit_rate=hit_rate,
            pressure=self._pressure(load.running + load.waiting),
            t2_hit_tokens=_count(load.t2_hit_tokens or 0.0),
            t2_query_tokens=_count(load.t2_query_tokens or 0.0),
        )

    def _pressure(self, requests: float) -> float:
        ceiling = self._settings.concurrency_ceiling
        return _ratio(requests / ceiling) if ceiling > 0 else 0.0

    def _hit_rate(self, load: EngineLoad) -> float:
        if load.hit_rate is not None:
            return _ratio(load.hit_rate)
        if load.hit_tokens is None or load.query_tokens is None:
            return 0.0
        before = self._baseline
        self._baseline = (load.hit_tokens, load.query_tokens)
        if before is None:
            return 0.0
        hits, queries = load.hit_tokens - before[0], load.query_tokens - before[1]
        if hits < 0 or queries <= 0:
            return 0.0
        return _ratio(hits / queries)


def _ratio(value: float) -> float:
    return min(1.0, max(0.0, value))


def _count(value: float) -> int:
    return int(min(max(value, 0.0), _COUNT_MAX))
