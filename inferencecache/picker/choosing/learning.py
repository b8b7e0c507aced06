"""Learn from what callers report about one choice: how long its first token took."""

from typing import Protocol

from inferencecache.clock import Clock
from inferencecache.picker.choosing.aftermath import is_good
from inferencecache.picker.decisions import (
    AbortReport,
    DecisionFollower,
    Ending,
    FinalTokenReport,
    FirstTokenReport,
)
from inferencecache.picker.fleet import Candidate
from inferencecache.picker.ttft import Foresight, Situation


class LearningObserver(Protocol):
    """Told what was learnt."""

    def first_token_took(self, expected_ms: float, observed_ms: float) -> None:
        """Take note of how long a first token took, and how long it was expected to take."""
        ...

    def gaps_between_tokens(self, candidate: str, counts: tuple[int, ...]) -> None:
        """Take note of the gaps between the tokens of one answer, by the buckets of layout 1."""
        ...


class Learning:
    """Follows one choice, and teaches.

    Only a good answer teaches: one that failed at once says nothing of how fast its sender is.

    Args:
        foresight: Whom.
        observer: Told, too.
        clock: Monotonic time.
        candidate: What was chosen.
        situation: What the request met there.
        prompt_tokens: Its length.
        is_stream: Whether the answer comes in pieces.
        expected_ms: What was expected of it.
    """

    __slots__ = (
        "_candidate",
        "_clock",
        "_expected_ms",
        "_foresight",
        "_is_stream",
        "_observer",
        "_prompt_tokens",
        "_situation",
    )

    def __init__(  # noqa: PLR0913 - all that it remembers until a report comes
        self,
        foresight: Foresight,
        observer: LearningObserver,
        clock: Clock,
        *,
        candidate: Candidate,
        situation: Situation,
        prompt_tokens: int,
        is_stream: bool,
        expected_ms: float,
    ) -> None:
        self._foresight = foresight
        self._observer = observer
        self._clock = clock
        self._candidate = candidate
        self._situation = situation
        self._prompt_tokens = prompt_tokens
        self._is_stream = is_stream
        self._expected_ms = expected_ms

    def first_token(self, report: FirstTokenReport) -> None:
        """Learn how long it took."""
        if not is_good(report.upstream_status):
            return
        counted_ms = self._foresight.observe(
            self._candidate,
            self._situation,
            prompt_tokens=self._prompt_tokens,
            is_stream=self._is_stream,
            observed_ms=report.observed_ttft_ms,
            now_ns=self._clock.monotonic_ns(),
        )
        if counted_ms is not None:
            self._observer.first_token_took(self._expected_ms, counted_ms)

    def ended(self, _ending: Ending, report: FinalTokenReport | AbortReport | None) -> None:
        """Pass on how far apart its tokens came."""
        if isinstance(report, FinalTokenReport) and report.itl_bucket_counts:
            self._observer.gaps_between_tokens(self._candidate.name, report.itl_bucket_counts)


class LearnsNothing:
    """Takes no note."""

    def first_token_took(self, expected_ms: float, observed_ms: float) -> None:
        """Take no note."""

    def gaps_between_tokens(self, candidate: str, counts: tuple[int, ...]) -> None:
        """Take no note."""


class Followers:
    """Several that follow one decision, in order.

    Args:
        followers: Who they are.
    """

    __slots__ = ("_followers",)

    def __init__(self, *followers: DecisionFollower | None) -> None:
        self._followers = [follower for follower in followers if follower is not None]

    def first_token(self, report: FirstTokenReport) -> None:
        """Tell all of them."""
        for follower in self._followers:
            follower.first_token(report)

    def ended(self, ending: Ending, report: FinalTokenReport | AbortReport | None) -> None:
        """Tell all of them."""
        for follower in self._followers:
            follower.ended(ending, report)
