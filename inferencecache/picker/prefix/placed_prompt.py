"""A prompt from the question where it is warm to the end of its request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from math import isfinite

import msgspec

from inferencecache.clock import NS_PER_MS, Clock
from inferencecache.picker.decisions import (
    AbortReport,
    Ending,
    FinalTokenReport,
    FirstTokenReport,
)
from inferencecache.picker.fleet import Candidate, ModelRow, WorkerSet
from inferencecache.picker.prefix.audit import CacheAudit
from inferencecache.picker.prefix.index_source import IndexQuestion
from inferencecache.picker.prefix.picked_blocks import PickedBlocks, Placing
from inferencecache.picker.prefix.prompt_at import NO_CLAIM, Claim, PromptAt
from inferencecache.picker.prefix.signal import PrefixSource
from inferencecache.settings.picker_prefix import PickerPrefixSettings

SetOfModel = tuple[WorkerSet, ModelRow]
"""A worker set and which of its models a request is for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningParts:
    """Who learns where prompts go.

    Attributes:
        settings: How long a prompt is expected where it was sent.
        clock: Monotonic time.
        blocks: What went where.
        audit: What claims are worth.
        credit: Told of each match by which a prompt was placed: what was asked, of which replica,
            and how many tokens it holds.
    """

    settings: PickerPrefixSettings
    clock: Clock
    blocks: PickedBlocks
    audit: CacheAudit
    credit: Callable[[IndexQuestion, str, int], None] = lambda _question, _replica, _tokens: None


class SensedPrompt:
    """What was found out about a prompt, until it is placed.

    Args:
        parts: Who learns where it goes.
        prompts: The prompt as each worker set sees it.
        claims: By the candidate's name; whoever is not in it has nothing.
    """

    __slots__ = ("_claims", "_parts", "_prompts")

    def __init__(
        self,
        parts: LearningParts,
        prompts: list[tuple[SetOfModel, PromptAt]],
        claims: Mapping[str, Claim],
    ) -> None:
        self._parts = parts
        self._prompts = prompts
        self._claims = claims

    def placed(self, candidate: Candidate, expected_ttft_ms: float) -> "PlacedPrompt | None":
        """Take note that the prompt goes to *candidate*; see :class:`PrefixTrace`."""
        for (worker_set, row), prompt in self._prompts:
            if worker_set is candidate.member and row is candidate.model:
                placing = self._place(candidate.name, prompt, expected_ttft_ms)
                claim = self._claims.get(candidate.name, NO_CLAIM)
                if claim.index_tokens and prompt.question and candidate.endpoint:
                    replica_id = candidate.endpoint.name
                    self._parts.credit(prompt.question, replica_id, claim.index_tokens)
                return PlacedPrompt(
                    self._parts, candidate.name, placing, claim, prompt.is_comparable
                )
        return None

    def _place(self, name: str, prompt: PromptAt, expected_ttft_ms: float) -> Placing:
        settings, now_ns = self._parts.settings, self._parts.clock.monotonic_ns()
        ttft_ns = expected_ttft_ms * NS_PER_MS * settings.expected_ttfts
        longest_ns = min(ttft_ns, settings.idle_ns) if isfinite(ttft_ns) else 0
        expected_ns = now_ns + max(settings.expected_min_ns, int(longest_ns))
        return self._parts.blocks.place(name, prompt.keys.keys, now_ns, expected_ns)


class PlacedPrompt(msgspec.Struct, eq=False):
    """Follows one request: what fails or is never sent leaves nothing behind.

    Attributes:
        parts: Who learns from it.
        endpoint: Where it went.
        placing: What was noted then; None once that is settled or withdrawn.
        claim: What was said of its prompt where it went.
        is_comparable: Whether that says of the whole prompt what the index says.
        is_failed: Whether it was withdrawn.
    """

    parts: LearningParts
    endpoint: str
    placing: Placing | None
    claim: Claim
    is_comparable: bool
    is_failed: bool = False

    def first_token(self, report: FirstTokenReport) -> None:
        """Learn from the status of the answer."""
        is_good = HTTPStatus.OK <= report.upstream_status < HTTPStatus.MULTIPLE_CHOICES
        self._settle(has_worked=is_good)

    def ended(self, ending: Ending, report: FinalTokenReport | AbortReport | None) -> None:
        """Learn from the end; without any sign of an answer the prompt was never there."""
        is_finished = ending is Ending.FINISHED
        self._settle(has_worked=is_finished)
        if is_finished and isinstance(report, FinalTokenReport) and not self.is_failed:
            self._learn(report)

    def _settle(self, *, has_worked: bool) -> None:
        """Keep or withdraw what was noted; whatever is known first decides."""
        placing, self.placing = self.placing, None
        if placing is None:
            return
        self.is_failed = not has_worked
        if has_worked:
            self.parts.blocks.settle(placing)
        else:
            self.parts.blocks.withdraw(placing)

    def _learn(self, report: FinalTokenReport) -> None:
        cached_tokens = report.cached_tokens
        if cached_tokens is None:
            return
        audit, claim, endpoint = self.parts.audit, self.claim, self.endpoint
        audit.claimed(endpoint, PrefixSource.PRECISE, claim.index_tokens, cached_tokens)
        if claim.memory is PrefixSource.APPROXIMATE:
            audit.claimed(endpoint, claim.memory, claim.memory_tokens, cached_tokens)
        if self.is_comparable and claim.memory_tokens <= claim.index_tokens:
            audit.compared(endpoint, claim.index_tokens, cached_tokens)
        audit.expected(endpoint, claim.match.matched_tokens, cached_tokens)
