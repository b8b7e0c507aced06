"""The seam between a Pick and whoever knows where its prompt is warm.

A Pick asks once, after it knows its candidates; the answer says for each how much of the prompt it
need not compute. Where the Pick then goes is told back, so that the next one knows at once.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Protocol

import msgspec

from inferencecache.picker.choice import Question
from inferencecache.picker.decisions import DecisionFollower
from inferencecache.picker.fleet import Candidate


class PrefixSource(StrEnum):
    """Where a match comes from."""

    NONE = "none"
    """Nothing is known, or nothing is asked for."""
    PRECISE = "precise"
    """Engines said what they hold."""
    SPECULATIVE = "speculative"
    """An earlier Pick was sent there; its blocks are held by now, or about to be."""
    APPROXIMATE = "approximate"
    """Engines say nothing; earlier Picks went there."""

    __hash__ = str.__hash__  # that of an enum is a Python function, which each worker would pay for


class CandidateMatch(msgspec.Struct, frozen=True, gc=False):
    """How much of a prompt one candidate has.

    Attributes:
        matched_tokens: Tokens that it need not compute, trust and tier allowed for; less than the
            prompt, since the last token is always computed.
        source: Who says so.
    """

    matched_tokens: int
    source: PrefixSource


NO_MATCH: Final = CandidateMatch(matched_tokens=0, source=PrefixSource.NONE)
NO_MATCHES: Final[Mapping[str, CandidateMatch]] = MappingProxyType({})
NO_LENGTHS: Final[Mapping[str, int]] = MappingProxyType({})
NO_NOTE: Final[Mapping[str, str]] = MappingProxyType({})


class PrefixTrace(Protocol):
    """One prompt's blocks, kept from the question to the placing."""

    def placed(self, candidate: Candidate, expected_ttft_ms: float) -> DecisionFollower | None:
        """Take note that the prompt goes to *candidate*.

        Args:
            candidate: Where it goes.
            expected_ttft_ms: When its blocks are to be expected there, in milliseconds.

        Returns:
            To be told how it goes on: a request that fails, or is never sent, leaves nothing
            behind. None if that makes no difference.
        """
        ...


class PrefixFound(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one prompt.

    Attributes:
        prompt_tokens: Its length, the largest where worker sets count it differently; None where
            nobody counted it, and an estimate has to do.
        believed_tokens: Its length as its characters have it, None where nobody read them; where
            nobody counted it, no match is longer.
        lengths: By the candidate's name its length there, where sets count it differently; empty
            where they do not.
        matches: By the candidate's name; whoever is not in it has nothing.
        source: For the reason of a Pick: the best source that was asked.
        degraded: What was configured and is missing, as tokens for the reason: ``index_timeout``.
        note: Further ``key=value`` pairs for the reason, by key: what was left out and why.
        trace: Told of the placing; None if nobody learns from it.
    """

    prompt_tokens: int | None = None
    believed_tokens: int | None = None
    lengths: Mapping[str, int] = NO_LENGTHS
    matches: Mapping[str, CandidateMatch] = NO_MATCHES
    source: PrefixSource = PrefixSource.NONE
    degraded: tuple[str, ...] = ()
    note: Mapping[str, str] = NO_NOTE
    trace: PrefixTrace | None = None


NOTHING_FOUND: Final = PrefixFound()


class PrefixSignal(Protocol):
    """Knows where prompts are warm."""

    async def sense(self, question: Question, candidates: Sequence[Candidate]) -> PrefixFound:
        """Return what is known of the prompt of *question*.

        Never raises for what a prompt, an engine or an index does, never takes longer than its
        settings allow, and does not wait at all where everything it needs is at hand.
        """
        ...


class NoPrefixSignal:
    """Knows nothing, by design: nothing is missing."""

    async def sense(self, _question: Question, _candidates: Sequence[Candidate]) -> PrefixFound:
        """Return that nothing is known."""
        return NOTHING_FOUND
