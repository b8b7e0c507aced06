"""Notice an engine that computes prompts and says nothing about it.

A wrong topic, a wrong port or events that are switched off look exactly like an idle engine from
the socket's side. The metrics page tells them apart: prompts that were looked up in the cache and
not found there must become stored blocks.
"""

from inferencecache.events.engine_metrics import EngineLoad


class SilenceWatch:
    """Compares what an engine computes with what it publishes.

    Args:
        silent_after_ns: How long it may compute without publishing.
        missed_tokens_min: Tokens computed in that time that must have become a block.
    """

    def __init__(self, silent_after_ns: int, missed_tokens_min: int) -> None:
        self._silent_after_ns = silent_after_ns
        self._missed_tokens_min = missed_tokens_min
        self._heard = 0
        self._since_ns: int | None = None
        self._missed_before = 0.0
        self._was_busy = False

    def look(self, load: EngineLoad, heard: int, now_ns: int) -> bool:
        """Return whether the engine is silent although it works.

        Args:
            load: What its metrics page says.
            heard: Messages received from it so far, of any kind.
            now_ns: Monotonic time.
        """
        missed = (load.query_tokens or 0.0) - (load.hit_tokens or 0.0)
        if self._since_ns is None or heard != self._heard or missed < self._missed_before:
            self._heard, self._since_ns, self._missed_before = heard, now_ns, missed
            self._was_busy = False
        self._was_busy = self._is_busy(load, missed) or self._was_busy
        return self._was_busy and now_ns - self._since_ns >= self._silent_after_ns

    def _is_busy(self, load: EngineLoad, missed: float) -> bool:
        if load.query_tokens is not None:
            return missed - self._missed_before >= self._missed_tokens_min
        return bool(load.running)
