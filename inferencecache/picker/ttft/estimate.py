"""Estimated time to the first token: what an engine's speed says, before anything was observed."""

from inferencecache.picker.fleet import PriorsForEngine
from inferencecache.picker.ttft.situation import TOKENS_PER_UNIT, Features, Situation

_MS_PER_S = 1_000.0


def estimated_ttft_ms(
    situation: Situation, priors: PriorsForEngine, waiting: int, waiting_request_ms: float
) -> float:
    """Return the estimate in milliseconds; it always has a value.

    A prompt of 8,000 uncached tokens behind 4,000 others, at 8,000 tokens/s and 50 ms:

    >>> priors = PriorsForEngine(
    ...     prefill_tokens_per_s=8_000.0, base_ttft_ms=50.0, concurrency_max=64
    ... )
    >>> situation = Situation(
    ...     uncached_tokens=8_000, uncached_tokens_ahead=4_000, requests_ahead=1
    ... )
    >>> estimated_ttft_ms(situation, priors, waiting=0, waiting_request_ms=20.0)
    1550.0

    Args:
        situation: What the endpoint would meet.
        priors: What is believed of it.
        waiting: Requests in the engine's own queue, if it says; else 0.
        waiting_request_ms: What each of them adds.

    Complexity: O(1).
    """
    tokens = max(0, situation.uncached_tokens) + max(0, situation.uncached_tokens_ahead)
    prefill_ms = _MS_PER_S * tokens / priors.prefill_tokens_per_s
    return priors.base_ttft_ms + prefill_ms + max(0, waiting) * waiting_request_ms


def prior_weights(priors: PriorsForEngine) -> Features:
    """Return the estimate as the weights of a fit: ms, ms per thousand tokens, ms per request."""
    prefill_ms = _MS_PER_S * TOKENS_PER_UNIT / priors.prefill_tokens_per_s
    return (priors.base_ttft_ms, prefill_ms, prefill_ms, 0.0)
