"""What an engine's replay and its metrics page say."""

from collections.abc import Iterator
from typing import Final

from inferencecache.app.doctor_findings import Finding, finding
from inferencecache.app.doctor_stream import Traffic
from inferencecache.events.engine_metrics import EngineKind, Sample, engine_kind_of, read_load
from inferencecache.settings.doctor import DoctorSettings
from inferencecache.settings.producer import LoadSettings
from inferencecache.transport.doctor_ear import Past
from inferencecache.transport.doctor_page import Page

_SERVED: Final = (
    "vllm:prompt_tokens_total",
    "vllm:prefix_cache_queries_total",
    "vllm:gpu_prefix_cache_queries_total",
    "sglang:prompt_tokens_total",
)
"""Counters that grow with every prompt."""


def judge_replay(past: Past, endpoint: str) -> Iterator[Finding]:
    """Yield whether a replay works and how far back it reaches."""
    if not past.is_answered:
        yield finding(
            "EY003", endpoint, "a ROUTER listens there, but the request for a replay got no answer"
        )
        return
    if not past.has_end:
        yield finding(
            "EY004", endpoint, "the replay did not say that it was over: it may be incomplete"
        )
    if not past.numbers:
        yield finding("EY001", endpoint, "replay works; the engine has published nothing yet")
        return
    first, last = min(past.numbers), max(past.numbers)
    missing = last - first + 1 - len(set(past.numbers))
    if missing:
        yield finding(
            "EY005",
            endpoint,
            f"{missing} numbers between {first} and {last} are missing: batches the engine could "
            "not encode, or (vLLM before 0.33) a replay larger than its queue",
        )
    if first:
        yield finding(
            "EY002",
            endpoint,
            f"replay works back to number {first}, not to 0: what was stored before it can no "
            "longer be learnt. Start the subscriber with the engine, or raise buffer_steps",
        )
    elif past.has_end and not missing:
        yield finding("EY001", endpoint, f"replay works, numbers {first} to {last}, complete")


def no_replay() -> Finding:
    """Return the finding for an engine without a replay endpoint."""
    return finding(
        "EY006",
        "",
        "replay was not checked: without it, what is lost stays lost. Set the engine's "
        "replay_endpoint and give --replay-endpoint",
    )


def judge_page(page: Page, settings: DoctorSettings) -> Finding:
    """Return whether the metrics page has what a load signal needs."""
    url = settings.metrics_url
    if page.error:
        return finding("EM002", url, f"no page: {page.error}")
    kind = engine_kind_of(settings.hash_scheme)
    load = read_load(kind, page.samples, LoadSettings())
    if load.is_empty:
        others = [
            other
            for other in EngineKind
            if other is not kind and not read_load(other, page.samples, LoadSettings()).is_empty
        ]
        message = f"the page has none of the metrics of {kind}"
        if others:
            message += f", but those of {others[0]}: see --hash-scheme"
        elif kind is EngineKind.SGLANG:
            message += ": start SGLang with --enable-metrics"
        return finding("EM003", url, message)
    if not load.has_load:
        return finding("EM004", url, "the gauges of running and waiting requests are missing")
    return finding("EM001", url, f"metrics of {kind}, with load and cache usage")


def no_page() -> Finding:
    """Return the finding for an engine whose page was not named."""
    return finding("EM005", "", "the metrics page was not checked: give --engine-metrics-url")


def traffic_between(before: Page | None, after: Page | None) -> Traffic:
    """Return how many prompt tokens were served between two looks at the page."""
    if before is None or after is None or before.error or after.error:
        return Traffic(is_known=False)
    grown = [
        _total(after.samples, name) - _total(before.samples, name)
        for name in _SERVED
        if any(sample.name == name for sample in after.samples)
    ]
    return Traffic(is_known=bool(grown), served_tokens=max(0, int(max(grown, default=0))))


def _total(samples: list[Sample], name: str) -> float:
    return sum(sample.value for sample in samples if sample.name == name)
