"""Estimated time to the first token: what an engine's speed says, before anything was observed."""

from inferencecache.picker.fleet import PriorsForEngine
from inferencecache.picker.ttft.situation import TOKENS_PER_UNIT, Features, Situation
from inferencecache.settings.picker_ttft import TtftSettings

_MS_PER_S = 1_000.0


def estimated_ttft_ms(
    situation: Situation, priors: PriorsForEngine, settings: TtftSettings
) -> float:
    """Return the estimate in milliseconds; it always has a value.

    A prompt of 8,000 uncached tokens behind 4,000 others and three requests, of which one waits,
    at 8,000 tokens/s and 50 ms: 50 ms, 12,000 tokens at 8 a millisecond, 3 ms, 20 ms.

    >>> priors = PriorsForEngine(
    ...     prefill_tokens_per_s=8_000.0, base_ttft_ms=50.0, concurrency_max=64
    ... )
    >>> situation = Situation(
    ...     uncached_tokens=8_000, uncached_tokens_ahead=4_000, requests_ahead=3, waiting_ahead=1
    ... )
    >>> estimated_ttft_ms(situation, priors, TtftSettings())
    1573.0

    Args:
        situation: What the request would meet; nothing in it is negative.
        priors: What is believed of the engine.
        settings: What each request ahead adds.

    Complexity: O(1).
    """
    own, ahead, requests, waiting = situation
    return (
        priors.base_ttft_ms
        + _MS_PER_S * (own + ahead) / priors.prefill_tokens_per_s
        + requests * settings.request_ahead_ms
        + waiting * settings.waiting_request_ms
    )


def prior_weights(priors: PriorsForEngine, settings: TtftSettings) -> Features:
    """Return the estimate as the weights of a fit: ms, ms per thousand tokens, ms per request."""
    prefill_ms = _MS_PER_S * TOKENS_PER_UNIT / priors.prefill_tokens_per_s
    return (priors.base_ttft_ms, prefill_ms, prefill_ms, settings.request_ahead_ms)
