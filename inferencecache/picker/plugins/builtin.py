"""Every type of plugins that the product brings."""

from typing import Any, Final

from inferencecache.picker.pipeline.registry import PluginType
from inferencecache.picker.plugins.active_request_scorer import ACTIVE_REQUEST_SCORER
from inferencecache.picker.plugins.context_length_aware import CONTEXT_LENGTH_AWARE
from inferencecache.picker.plugins.engine_load_scorers import (
    CACHE_UTILIZATION_SCORER,
    LOAD_AWARE_SCORER,
    QUEUE_SCORER,
    RUNNING_REQUESTS_SCORER,
)
from inferencecache.picker.plugins.header_label_affinity_scorer import HEADER_LABEL_AFFINITY_SCORER
from inferencecache.picker.plugins.inflight_load_producer import INFLIGHT_LOAD_PRODUCER
from inferencecache.picker.plugins.label_selector_filter import LABEL_SELECTOR_FILTER
from inferencecache.picker.plugins.lora_affinity_scorer import LORA_AFFINITY_SCORER
from inferencecache.picker.plugins.no_hit_lru_scorer import NO_HIT_LRU_SCORER
from inferencecache.picker.plugins.pickers import (
    MAX_SCORE_PICKER,
    RANDOM_PICKER,
    WEIGHTED_RANDOM_PICKER,
)
from inferencecache.picker.plugins.prefix_cache_scorer import (
    PRECISE_PREFIX_CACHE_SCORER,
    PREFIX_CACHE_SCORER,
)
from inferencecache.picker.plugins.session_affinity_scorer import SESSION_AFFINITY_SCORER
from inferencecache.picker.plugins.single_profile_handler import SINGLE_PROFILE_HANDLER
from inferencecache.picker.plugins.token_load_scorer import TOKEN_LOAD_SCORER

BUILTIN_TYPES: Final[tuple[PluginType[Any], ...]] = (
    ACTIVE_REQUEST_SCORER,
    CACHE_UTILIZATION_SCORER,
    CONTEXT_LENGTH_AWARE,
    HEADER_LABEL_AFFINITY_SCORER,
    INFLIGHT_LOAD_PRODUCER,
    LABEL_SELECTOR_FILTER,
    LOAD_AWARE_SCORER,
    LORA_AFFINITY_SCORER,
    MAX_SCORE_PICKER,
    NO_HIT_LRU_SCORER,
    PRECISE_PREFIX_CACHE_SCORER,
    PREFIX_CACHE_SCORER,
    QUEUE_SCORER,
    RANDOM_PICKER,
    RUNNING_REQUESTS_SCORER,
    SESSION_AFFINITY_SCORER,
    SINGLE_PROFILE_HANDLER,
    TOKEN_LOAD_SCORER,
    WEIGHTED_RANDOM_PICKER,
)
"""By name."""
