"""The metrics page of a simulated engine, with the names its release uses."""

from collections.abc import Iterator

from inferencecache.simulation.engine_layout import EngineLayout
from inferencecache.simulation.engine_player import EngineGauges


def render_page(layout: EngineLayout, gauges: EngineGauges, model_name: str) -> bytes:
    """Return the page in Prometheus text format.

    Args:
        layout: Whose names to use.
        gauges: What to show.
        model_name: Value of the ``model_name`` label.
    """
    families = _sglang(gauges) if layout.is_sglang else _vllm(layout, gauges)
    lines = [
        line
        for name, kind, value in families
        for line in (f"# TYPE {name} {kind}", f'{name}{{model_name="{model_name}"}} {value!r}')
    ]
    return ("\n".join(lines) + "\n").encode()


def _vllm(layout: EngineLayout, gauges: EngineGauges) -> Iterator[tuple[str, str, float]]:
    old = layout.has_usage_gauge_by_old_name
    yield f"vllm:{'gpu' if old else 'kv'}_cache_usage_perc", "gauge", gauges.usage_ratio
    yield "vllm:num_requests_running", "gauge", float(gauges.running)
    yield "vllm:num_requests_waiting", "gauge", float(gauges.waiting)
    prefix = "vllm:gpu_prefix_cache" if old else "vllm:prefix_cache"
    yield f"{prefix}_queries_total", "counter", float(gauges.query_tokens)
    yield f"{prefix}_hits_total", "counter", float(gauges.hit_tokens)
    yield "vllm:prompt_tokens_total", "counter", float(gauges.query_tokens)


def _sglang(gauges: EngineGauges) -> Iterator[tuple[str, str, float]]:
    rate = gauges.hit_tokens / gauges.query_tokens if gauges.query_tokens else 0.0
    yield "sglang:token_usage", "gauge", gauges.usage_ratio
    yield "sglang:num_running_reqs", "gauge", float(gauges.running)
    yield "sglang:num_queue_reqs", "gauge", float(gauges.waiting)
    yield "sglang:cache_hit_rate", "gauge", rate
    yield "sglang:prompt_tokens_total", "counter", float(gauges.query_tokens)
