"""Every metric of how prompts become blocks, once."""

from typing import Final

from inferencecache.transport.metric_catalog import MetricKind, MetricSpec

PROMPTS: Final = MetricSpec(
    name="inferencecache_picker_prompts_total",
    kind=MetricKind.COUNTER,
    labels=("result",),
    help="Prompts asked for as the engines' blocks, by where these came from, or why there are "
    "none.",
)
TOKENIZE_LATENCY: Final = MetricSpec(
    name="inferencecache_picker_tokenize_seconds",
    kind=MetricKind.HISTOGRAM,
    labels=("by",),
    buckets_seconds=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0),
    help="Time from a prompt to its tokens and blocks, here or at an engine; without those that "
    "were remembered.",
)
PROMPT_CACHE_BYTES: Final = MetricSpec(
    name="inferencecache_picker_prompt_cache_bytes",
    kind=MetricKind.GAUGE,
    labels=("of",),
    help="Bytes of remembered block hashes: of prompts, to be told again, and of histories, to be "
    "gone on from.",
)
TOKENIZERS: Final = MetricSpec(
    name="inferencecache_picker_tokenizers",
    kind=MetricKind.GAUGE,
    help="Tokenizers in memory.",
)

TOKENIZE_CATALOG: Final = (PROMPTS, TOKENIZE_LATENCY, PROMPT_CACHE_BYTES, TOKENIZERS)
"""All of them, in the order of the reference page."""
