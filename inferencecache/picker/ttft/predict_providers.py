"""Predicted time to the first token of providers: the median of what was seen lately.

Nobody knows what happens inside of a provider, so there is nothing to fit: the median of the recent
times, by provider, model and size of the prompt, or no value at all.
"""

from collections import OrderedDict, deque
from statistics import median_low
from typing import Final

from inferencecache.picker.fleet import ObjectName
from inferencecache.picker.ttft.counted_time import counted_ms
from inferencecache.settings.picker_ttft import TtftSettings

SIZE_EDGES_TOKENS: Final = (1_024, 4_096, 16_384, 65_536)
"""Prompts are alike if they lie between the same two of these."""

_SAMPLES_KEPT: Final = 256

_Key = tuple[ObjectName, str, int]


def size_bucket(prompt_tokens: int) -> int:
    """Return how many of the edges a prompt exceeds.

    >>> size_bucket(1_024), size_bucket(1_025)
    (0, 1)
    """
    return sum(prompt_tokens > edge for edge in SIZE_EDGES_TOKENS)


class ProviderPredictor:
    """Learns and predicts for all providers.

    Args:
        settings: What counts as evidence.
    """

    def __init__(self, settings: TtftSettings) -> None:
        self._settings = settings
        self._histories: OrderedDict[_Key, deque[tuple[int, float]]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many histories there are."""
        return len(self._histories)

    def observe(
        self, provider: ObjectName, model: str, prompt_tokens: int, observed_ms: float, now_ns: int
    ) -> None:
        """Learn from the first token of one successful request.

        Complexity: O(1).
        """
        key = (provider, model, size_bucket(prompt_tokens))
        history = self._histories.get(key)
        if history is None:
            if len(self._histories) >= self._settings.providers_max:
                self._histories.popitem(last=False)
            kept = max(_SAMPLES_KEPT, self._settings.samples_min)
            history = self._histories[key] = deque(maxlen=kept)
        self._histories.move_to_end(key)
        history.append((now_ns, counted_ms(observed_ms, self._settings)))

    def predict_ms(
        self, provider: ObjectName, model: str, prompt_tokens: int, now_ns: int
    ) -> float | None:
        """Return the median of the recent times, or None where there are too few.

        Complexity: O(n log n) in the times kept, 256 unless more are needed for a value.
        """
        history = self._histories.get((provider, model, size_bucket(prompt_tokens)))
        if history is None:
            return None
        while history and now_ns - history[0][0] > self._settings.window_ns:
            history.popleft()
        if len(history) < self._settings.samples_min:
            return None
        return median_low(observed_ms for _, observed_ms in history)
