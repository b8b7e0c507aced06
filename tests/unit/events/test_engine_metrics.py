"""What an engine's metrics page says about load and cache, across releases."""

import pytest
from metrics_page import page, samples_of

from inferencecache.events.engine_metrics import (
    AdapterLoad,
    EngineKind,
    EngineLoad,
    LoadTracker,
    Sample,
    engine_kind_of,
    read_load,
)
from inferencecache.settings.producer import LoadSettings

VLLM, SGLANG = EngineKind.VLLM, EngineKind.SGLANG


def gauge(name: str, value: float, **labels: str) -> Sample:
    """Return one gauge series."""
    return Sample(name=name, value=value, labels=labels, kind="gauge")


def counter(name: str, value: float, **labels: str) -> Sample:
    """Return one counter series."""
    return Sample(name=name, value=value, labels=labels, kind="counter")


def vllm(*samples: Sample, **settings: object) -> EngineLoad:
    """Read *samples* as a vLLM page."""
    return read_load(VLLM, samples, LoadSettings(**settings))  # type: ignore[arg-type]


def load_of(running: float = 0.0, waiting: float = 0.0, **more: float) -> EngineLoad:
    """Return a page with both load gauges."""
    return EngineLoad(running=running, waiting=waiting, **more)


def test_idle_page_cut_in_the_middle() -> None:
    """A page that ends inside a family still says what it says."""
    load = read_load(VLLM, page("vllm_v1_idle_head40.txt"), LoadSettings())

    assert load.usage_ratio == 0.0
    assert load.has_load
    assert (load.hit_tokens, load.query_tokens) == (0.0, 0.0)
    assert LoadTracker(LoadSettings()).report(load) is not None


def test_new_and_old_names_side_by_side() -> None:
    """The new name of the usage gauge is read; the old counters are not taken for it."""
    load = read_load(VLLM, page("vllm_v0100_both_names_excerpt.txt"), LoadSettings())

    assert load.usage_ratio == 9.75010481363281e-06
    assert load.query_tokens == 32.0
    assert not load.has_load
    assert LoadTracker(LoadSettings()).report(load) is None


def test_adapters_are_the_labels_of_the_newest_series() -> None:
    """Its value is a time; each change of the labels leaves a series of the old ones behind."""
    name = "vllm:lora_requests_info"
    old = gauge(name, 1_700.0, max_lora="4", running_lora_adapters="a", waiting_lora_adapters="")
    new = gauge(
        name, 1_800.0, max_lora="4", running_lora_adapters="b, c", waiting_lora_adapters="d"
    )
    found = AdapterLoad(running=frozenset({"b", "c"}), waiting=frozenset({"d"}), room=4)
    assert vllm(new, old).adapters == vllm(old, new).adapters == found
    none = gauge(name, 1_900.0, max_lora="none", running_lora_adapters="")
    assert vllm(new, none).adapters == AdapterLoad()
    assert vllm(gauge(name, 1.0, running_lora_adapters="a" * 65_537)).adapters is None
    assert vllm().adapters is None


def test_oldest_names() -> None:
    """Before the rename the larger of GPU and CPU usage counts."""
    old = [gauge("vllm:gpu_cache_usage_perc", 0.25), gauge("vllm:cpu_cache_usage_perc", 0.5)]

    assert vllm(*old).usage_ratio == 0.5
    assert vllm(*old, cache_tier="gpu").usage_ratio == 0.25
    assert vllm(*old, cache_tier="cpu").usage_ratio == 0.5
    assert vllm(*old, cache_tier="kv").usage_ratio is None
    assert vllm(*old, gauge("vllm:kv_cache_usage_perc", 0.1)).usage_ratio == 0.1


def test_created_times_are_not_counts() -> None:
    """Names are compared whole, so a rate of real counters comes out."""
    load = read_load(VLLM, page("vllm_warm_prefix_excerpt.txt"), LoadSettings())

    assert (load.hit_tokens, load.query_tokens) == (202736.0, 230400.0)
    assert load.hit_tokens is not None
    assert load.query_tokens is not None
    assert load.hit_tokens / load.query_tokens == pytest.approx(0.880, abs=5e-4)


def test_series_without_a_type_are_absent() -> None:
    """A page without TYPE lines tells nothing about this profile."""
    load = read_load(VLLM, page("vllm_waiting_by_reason_excerpt.txt"), LoadSettings())

    assert load.is_empty


def test_overloaded_sglang_page() -> None:
    """Usage, load and the gauge of the hit rate are read from SGLang's names."""
    load = read_load(SGLANG, page("sglang_llama31_8b_overloaded.txt"), LoadSettings())
    report = LoadTracker(LoadSettings(engine_cache_size_bytes=1_000)).report(load)

    assert (load.usage_ratio, load.running, load.waiting) == (0.28, 162.0, 2826.0)
    assert report is not None
    assert report.pressure == 1.0
    assert report.cache_memory_bytes == 280
    assert report.hit_rate == pytest.approx(0.0075, abs=1e-4)


def test_counters_without_total() -> None:
    """Builds that drop the suffix are read; the suffixed one wins."""
    assert vllm(counter("vllm:prefix_cache_hits", 3.0)).hit_tokens == 3.0
    both = [counter("vllm:prefix_cache_hits", 3.0), counter("vllm:prefix_cache_hits_total", 5.0)]
    assert vllm(*both).hit_tokens == 5.0
    text = "# TYPE vllm:prefix_cache_hits counter\nvllm:prefix_cache_hits 4.0\n"
    assert read_load(VLLM, samples_of(text), LoadSettings()).hit_tokens == 4.0


def test_wrong_type_reads_as_absent() -> None:
    """A counter where a gauge belongs is something else."""
    assert vllm(counter("vllm:num_requests_running", 3.0)).running is None
    assert vllm(gauge("vllm:prefix_cache_hits_total", 3.0)).hit_tokens is None


def test_several_series_and_broken_values() -> None:
    """Loads add up over schedulers, ratios take the largest, NaN and Inf do not count."""
    load = vllm(
        gauge("vllm:num_requests_running", 2.0, engine="0"),
        gauge("vllm:num_requests_running", 3.0, engine="1"),
        gauge("vllm:num_requests_running", float("nan"), engine="2"),
        gauge("vllm:kv_cache_usage_perc", 0.2, engine="0"),
        gauge("vllm:kv_cache_usage_perc", 0.6, engine="1"),
        gauge("vllm:kv_cache_usage_perc", float("inf"), engine="2"),
    )

    assert load.running == 5.0
    assert load.usage_ratio == 0.6


def test_priorities_and_parallel_ranks_do_not_multiply_queues() -> None:
    """Per-priority series are parts, and ranks of one scheduler show one queue."""
    name = "sglang:num_queue_reqs"
    load = read_load(
        SGLANG,
        [
            gauge(name, 4.0, model_name="m", tp_rank="0", dp_rank="0", priority=""),
            gauge(name, 4.0, model_name="m", tp_rank="1", dp_rank="0"),
            gauge(name, 3.0, model_name="m", tp_rank="0", dp_rank="0", priority="5"),
            gauge(name, 2.0, model_name="m", tp_rank="0", dp_rank="1"),
        ],
        LoadSettings(),
    )

    assert load.waiting == 6.0


def test_model_filter() -> None:
    """Series of another model, or without a model, do not match a given name."""
    load = vllm(
        gauge("vllm:num_requests_running", 2.0, model_name="a"),
        gauge("vllm:num_requests_running", 5.0, model_name="b"),
        gauge("vllm:num_requests_waiting", 7.0),
        engine_model_name="a",
    )

    assert load.running == 2.0
    assert load.waiting is None


def test_hit_rate_is_the_rate_between_two_pages() -> None:
    """The first page gives none; a reset or no new queries gives 0 and a new baseline."""
    tracker = LoadTracker(LoadSettings())
    pages = [(100, 200), (150, 260), (150, 260), (10, 20), (20, 30), (40, 35)]
    rates = []
    for hits, queries in pages:
        report = tracker.report(load_of(hit_tokens=hits, query_tokens=queries))
        assert report is not None
        rates.append(report.hit_rate)

    assert rates == [0.0, pytest.approx(50 / 60), 0.0, 0.0, 1.0, 1.0]


def test_missing_counter_keeps_the_baseline() -> None:
    """One page without a counter makes no false spike on its return."""
    tracker = LoadTracker(LoadSettings())
    tracker.report(load_of(hit_tokens=10, query_tokens=20))
    gap = tracker.report(load_of(hit_tokens=15))
    after = tracker.report(load_of(hit_tokens=20, query_tokens=40))

    assert gap is not None
    assert after is not None
    assert gap.hit_rate == 0.0
    assert after.hit_rate == 0.5


def test_page_without_load_withholds_the_report_and_the_baseline() -> None:
    """A missing load gauge is unknown, not idle, and the next rate covers both intervals."""
    tracker = LoadTracker(LoadSettings())
    tracker.report(load_of(hit_tokens=0, query_tokens=0))
    assert tracker.report(EngineLoad(hit_tokens=50, query_tokens=50)) is None
    report = tracker.report(load_of(hit_tokens=50, query_tokens=100))

    assert report is not None
    assert report.hit_rate == 0.5


def test_pressure_and_tier_counters() -> None:
    """Pressure is clamped; a ceiling of 0 gives none; tier counters are raw totals."""
    busy = load_of(300.0, 5.0, t2_hit_tokens=12.0, t2_query_tokens=1e30, usage_ratio=0.5)
    report = LoadTracker(LoadSettings(engine_cache_size_bytes=100)).report(busy)
    assert report is not None
    assert (report.pressure, report.cache_memory_bytes) == (1.0, 50)
    assert report.t2_hit_tokens == 12
    assert report.t2_query_tokens == 2**62

    report = LoadTracker(LoadSettings(concurrency_ceiling=0)).report(busy)
    assert report is not None
    assert report.pressure == 0.0
    half = LoadTracker(LoadSettings()).report(load_of(100.0, 28.0))
    assert half is not None
    assert half.pressure == 0.5


def test_profile_follows_the_hash_scheme() -> None:
    """Anything that is not SGLang's scheme is read as vLLM."""
    assert engine_kind_of("sglang") is SGLANG
    assert engine_kind_of("vllm") is VLLM
    assert engine_kind_of("other") is VLLM
