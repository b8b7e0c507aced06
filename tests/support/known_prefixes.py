"""A prefix signal that says what it is told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inferencecache.picker.choice import Question
from inferencecache.picker.decisions import (
    AbortReport,
    DecisionFollower,
    Ending,
    FinalTokenReport,
    FirstTokenReport,
)
from inferencecache.picker.fleet import Candidate
from inferencecache.picker.prefix import CandidateMatch, PrefixFound, PrefixSource


@dataclass
class NotedTrace:
    """Keeps where prompts were placed, and how that went on."""

    placed_at: list[tuple[str, float]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)

    def placed(self, candidate: Candidate, expected_ttft_ms: float) -> DecisionFollower:
        """Keep where and until when."""
        self.placed_at.append((candidate.name, expected_ttft_ms))
        return self

    def first_token(self, report: FirstTokenReport) -> None:
        """Keep the status."""
        self.statuses.append(report.upstream_status)

    def ended(self, ending: Ending, _report: FinalTokenReport | AbortReport | None) -> None:
        """Keep the ending."""
        self.endings.append(ending)


class KnownPrefixes:
    """Says the same of every prompt.

    Args:
        matched: Tokens by candidate.
        source: Who says so.
        found: Further things that it says.
    """

    def __init__(
        self,
        matched: Mapping[str, int] | None = None,
        source: PrefixSource = PrefixSource.PRECISE,
        **found: object,
    ) -> None:
        self.trace = NotedTrace()
        self.asked: list[tuple[str, ...]] = []
        self._found = PrefixFound(
            matches={
                name: CandidateMatch(matched_tokens=tokens, source=source)
                for name, tokens in (matched or {}).items()
            },
            source=source,
            trace=self.trace,
            **found,
        )

    async def sense(self, _question: Question, candidates: Sequence[Candidate]) -> PrefixFound:
        """Return what is known."""
        self.asked.append(tuple(candidate.name for candidate in candidates))
        return self._found
