"""What is foreseen of candidates, and learnt from what callers report of them.

Estimates always have a value, predictions only where there is evidence. Workers are estimated from
the speed that is believed of them, providers from what was seen lately or else from a setting.
"""

from collections.abc import Set as AbstractSet
from typing import Final

from inferencecache.picker.fleet import Candidate, WorkerSet
from inferencecache.picker.ttft.counted_time import counted_ms
from inferencecache.picker.ttft.estimate import estimated_ttft_ms
from inferencecache.picker.ttft.predict_providers import ProviderPredictor
from inferencecache.picker.ttft.predict_workers import WorkerPredictor
from inferencecache.picker.ttft.situation import Situation
from inferencecache.settings.picker_ttft import TtftSettings


class Foresight:
    """Times to the first token of all candidates.

    Args:
        settings: What counts as evidence, and what is believed without.

    Attributes:
        settings: As given.
    """

    def __init__(self, settings: TtftSettings) -> None:
        self.settings: Final = settings
        self._workers = WorkerPredictor(settings)
        self._providers = ProviderPredictor(settings)
        self._heard_ns: dict[str, int] = {}
        self._streamed_ns: dict[str, int] = {}

    def estimated_ms(
        self, candidate: Candidate, situation: Situation, prompt_tokens: int, now_ns: int
    ) -> float:
        """Return the estimate in milliseconds, never negative and always a number.

        Args:
            candidate: Where the request might go.
            situation: What it would meet there.
            prompt_tokens: Its length; nobody knows what a provider has cached.
            now_ns: Monotonic time.
        """
        member = candidate.member
        if isinstance(member, WorkerSet):
            return estimated_ttft_ms(situation, member.priors, self.settings)
        predicted_ms = self.predicted_ms(candidate, situation, prompt_tokens, now_ns)
        return self.settings.provider_ms if predicted_ms is None else predicted_ms

    def predicted_ms(
        self, candidate: Candidate, situation: Situation, prompt_tokens: int, now_ns: int
    ) -> float | None:
        """Return the prediction in milliseconds; None where too little was reported lately."""
        member = candidate.member
        if isinstance(member, WorkerSet):
            return self._workers.predict_ms(
                member.key,
                candidate.name,
                priors=member.priors,
                situation=situation,
                now_ns=now_ns,
            )
        return self._providers.predict_ms(member.key, candidate.model.name, prompt_tokens, now_ns)

    def observe(  # noqa: PLR0913 - what was met, where, and how it went
        self,
        candidate: Candidate,
        situation: Situation,
        *,
        prompt_tokens: int,
        is_stream: bool,
        observed_ms: float,
        now_ns: int,
    ) -> float | None:
        """Learn from the first token of a request that was answered well.

        The first byte of an answer of one piece is also its last, and says little of its first
        token. It teaches only where no stream has within the window.

        Args:
            candidate: Who answered.
            situation: What the request met when it was placed.
            prompt_tokens: Its length.
            is_stream: Whether the answer comes in pieces.
            observed_ms: How long it took, as the caller has measured it.
            now_ns: Monotonic time.

        Returns:
            The time that it counts as; None if it was not worth learning from.
        """
        member, name = candidate.member, candidate.name
        self._heard_ns[name] = now_ns
        if is_stream:
            self._streamed_ns[name] = now_ns
        elif self._has_streamed(name, now_ns):
            return None
        if isinstance(member, WorkerSet):
            self._workers.observe(
                member.key,
                candidate.name,
                priors=member.priors,
                situation=situation,
                observed_ms=observed_ms,
                now_ns=now_ns,
            )
        else:
            self._providers.observe(
                member.key, candidate.model.name, prompt_tokens, observed_ms, now_ns
            )
        return counted_ms(observed_ms, self.settings)

    def _has_streamed(self, name: str, now_ns: int) -> bool:
        streamed_ns = self._streamed_ns.get(name)
        return streamed_ns is not None and now_ns - streamed_ns <= self.settings.window_ns

    def heard_ns(self, name: str) -> int:
        """Return when the candidate *name* last answered well; -1 if it never did."""
        return self._heard_ns.get(name, -1)

    def retain(self, names: AbstractSet[str]) -> None:
        """Forget candidates but *names*: whoever comes back may be another one."""
        self._workers.retain(names)
        self._heard_ns = {name: at_ns for name, at_ns in self._heard_ns.items() if name in names}
        streamed_ns = self._streamed_ns.items()
        self._streamed_ns = {name: at_ns for name, at_ns in streamed_ns if name in names}
