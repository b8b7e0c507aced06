"""Learn from what callers report about one choice: how long its first token took."""

from typing import Protocol

import msgspec

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


class Learning(msgspec.Struct, eq=False):
    """Follows one choice, and teaches.

    Only a good answer teaches: one that failed at once says nothing of how fast its sender is.

    Attributes:
        foresight: Whom.
        observer: Told, too.
        clock: Monotonic time.
        candidate: What was chosen.
        situation: What the request met there.
        prompt_tokens: Its length.
        is_stream: Whether the answer comes in pieces.
        expected_ms: What was expected of it.
    """

    foresight: Foresight
    observer: LearningObserver
    clock: Clock
    candidate: Candidate
    situation: Situation
    prompt_tokens: int
    is_stream: bool
    expected_ms: float

    def first_token(self, report: FirstTokenReport) -> None:
        """Learn how long it took."""
        if not is_good(report.upstream_status):
            return
        counted_ms = self.foresight.observe(
            self.candidate,
            self.situation,
            prompt_tokens=self.prompt_tokens,
            is_stream=self.is_stream,
            observed_ms=report.observed_ttft_ms,
            now_ns=self.clock.monotonic_ns(),
        )
        if counted_ms is not None:
            self.observer.first_token_took(self.expected_ms, counted_ms)

    def ended(self, _ending: Ending, report: FinalTokenReport | AbortReport | None) -> None:
        """Pass on how far apart its tokens came."""
        if isinstance(report, FinalTokenReport) and report.itl_bucket_counts:
            self.observer.gaps_between_tokens(self.candidate.name, report.itl_bucket_counts)


class LearnsNothing:
    """Takes no note."""

    def first_token_took(self, expected_ms: float, observed_ms: float) -> None:
        """Take no note."""

    def gaps_between_tokens(self, candidate: str, counts: tuple[int, ...]) -> None:
        """Take no note."""


class Followers(msgspec.Struct, eq=False):
    """Several that follow one decision, in order.

    Attributes:
        followers: Who they are; None is nobody.
    """

    followers: tuple[DecisionFollower | None, ...]

    def first_token(self, report: FirstTokenReport) -> None:
        """Tell all of them."""
        for follower in self.followers:
            if follower is not None:
                follower.first_token(report)

    def ended(self, ending: Ending, report: FinalTokenReport | AbortReport | None) -> None:
        """Tell all of them."""
        for follower in self.followers:
            if follower is not None:
                follower.ended(ending, report)
