"""All that is known of caches, put together: signal, memory, trust and the standing of sets."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from inferencecache.clock import Clock
from inferencecache.picker.fleet import Member, WorkerSet
from inferencecache.picker.prefix.audit import CacheAudit
from inferencecache.picker.prefix.cache_signal import CacheSignal, CacheSignalParts
from inferencecache.picker.prefix.index_source import IndexQuestion, IndexSource
from inferencecache.picker.prefix.picked_blocks import PickedBlocks
from inferencecache.picker.prefix.placed_prompt import LearningParts
from inferencecache.picker.prefix.prompt_at import ClaimParts
from inferencecache.picker.prefix.set_standing import IndexKind, SetStanding
from inferencecache.picker.prefix.sightings import Sightings
from inferencecache.picker.prompt.blocks import PromptReader
from inferencecache.settings.picker_prefix import PickerPrefixSettings

_SLICE_RUNS: Final = 512
"""Runs of stretches let go at once, which takes well below a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixKnowledgeParts:
    """What is known with.

    Attributes:
        settings: Limits.
        clock: Monotonic time.
        reader: Turns prompts into blocks.
        index: Where it asks; None if there is none.
        is_index_named: Whether somebody has said which index to ask.
        sightings: When it has heard of whom.
        lacks_tokenizer: Whether a set has a tokenizer that cannot be read.
        credit: Told of each match by which a prompt was placed, see :class:`LearningParts`.
    """

    settings: PickerPrefixSettings
    clock: Clock
    reader: PromptReader
    index: IndexSource | None
    is_index_named: bool
    sightings: Sightings
    lacks_tokenizer: Callable[[WorkerSet], bool]
    credit: Callable[[IndexQuestion, str, int], None] = lambda _question, _replica, _tokens: None


class PrefixKnowledge:
    """Keeps what is known of the caches of one fleet.

    Args:
        parts: Its collaborators.

    Attributes:
        signal: Asked by Picks.
        standing: How worker sets stand to the index.
        blocks: What went where.
        audit: What claims are worth.
    """

    def __init__(self, parts: PrefixKnowledgeParts) -> None:
        settings, clock, index = parts.settings, parts.clock, parts.index
        self._parts = parts
        self.blocks = PickedBlocks(settings)
        self.audit = CacheAudit(settings)
        kind = IndexKind(
            is_there=index is not None,
            is_named=parts.is_index_named,
            hears_replicas=index is not None and index.hears_replicas,
        )
        self.standing = SetStanding(kind, parts.sightings, self.audit, parts.lacks_tokenizer)
        self.signal = CacheSignal(
            CacheSignalParts(
                settings=settings,
                clock=clock,
                reader=parts.reader,
                index=index,
                standing=self.standing,
                claims=ClaimParts(
                    settings=settings,
                    sightings=parts.sightings,
                    blocks=self.blocks,
                    audit=self.audit,
                ),
                learning=LearningParts(
                    settings=settings,
                    clock=clock,
                    blocks=self.blocks,
                    audit=self.audit,
                    credit=parts.credit,
                ),
            )
        )

    def adopt(self, members: Iterable[Member]) -> None:
        """Take the members of a fleet in the place of all earlier ones; forget who has left.

        Complexity: O(endpoints).
        """
        members = list(members)
        self.standing.adopt(members, self._parts.clock.monotonic_ns())
        addresses = {
            endpoint.address
            for member in members
            if isinstance(member, WorkerSet)
            for endpoint in member.endpoints
        }
        self.blocks.retain(addresses)
        self.audit.retain(addresses)

    def sweep_slices(self) -> Iterator[None]:
        """Let go of what is over, giving way between bounded slices."""
        while self.blocks.sweep(self._parts.clock.monotonic_ns(), _SLICE_RUNS):
            yield

    def overdue(self) -> list[tuple[WorkerSet, list[str]]]:
        """Return the workers that the index should have heard of by now, each once, by set."""
        now_ns = self._parts.clock.monotonic_ns()
        return self.standing.overdue(now_ns, self._parts.settings.unseen_warning_ns)
