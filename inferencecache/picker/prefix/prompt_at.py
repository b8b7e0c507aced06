"""A prompt as one worker set sees it, and what is claimed of each of its workers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from inferencecache.picker.fleet import Candidate
from inferencecache.picker.prefix.audit import CacheAudit
from inferencecache.picker.prefix.block_keys import BlockKeys
from inferencecache.picker.prefix.index_source import NO_INDEX_MATCHES, IndexMatch
from inferencecache.picker.prefix.picked_blocks import PickedBlocks
from inferencecache.picker.prefix.sightings import Sightings
from inferencecache.picker.prefix.signal import NO_MATCH, CandidateMatch, PrefixSource
from inferencecache.settings.picker_prefix import PickerPrefixSettings
from inferencecache.types import CacheTier


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptAt:
    """A prompt at one worker set.

    Attributes:
        keys: Its stretches.
        tokens_max: Most tokens that can be warm: the last one is always computed.
        index: What the index says, by replica.
        is_answered: Whether the index was asked and has answered.
        is_comparable: Whether its answer is about the whole prompt.
    """

    keys: BlockKeys
    tokens_max: int
    index: Mapping[str, IndexMatch] = field(default_factory=lambda: NO_INDEX_MATCHES)
    is_answered: bool = False
    is_comparable: bool = False


class Claim(NamedTuple):
    """What is said of a prompt at one worker.

    Attributes:
        index_tokens: By the index.
        memory_tokens: By what went where.
        memory: Which kind of memory that is: SPECULATIVE or APPROXIMATE.
        match: What is made of both.
    """

    index_tokens: int
    memory_tokens: int
    memory: PrefixSource
    match: CandidateMatch


NO_CLAIM: Final = Claim(0, 0, PrefixSource.NONE, NO_MATCH)
"""Nobody says anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimParts:
    """What claims are made from.

    Attributes:
        settings: What tokens of other tiers count, and when silence counts.
        sightings: When the index has heard of whom.
        blocks: What went where.
        audit: What claims are worth.
    """

    settings: PickerPrefixSettings
    sightings: Sightings
    blocks: PickedBlocks
    audit: CacheAudit


class Claims:
    """Puts together what is known of a worker.

    The index counts as far as it is trusted. An engine that it hears is believed to hold besides
    only what was sent to it just now. Of any other, all that was sent there and is remembered
    counts, as far as that has proved true. The larger of both wins.

    Args:
        parts: What claims are made from.
    """

    def __init__(self, parts: ClaimParts) -> None:
        self._parts = parts
        settings = parts.settings
        self._shares: Final = {
            CacheTier.UNSPECIFIED.value: 1.0,
            CacheTier.T1.value: 1.0,
            CacheTier.T2.value: settings.host_share,
        }
        self._coldest_share = settings.storage_share

    def of(self, candidate: Candidate, replica_id: str, prompt: PromptAt, now_ns: int) -> Claim:
        """Return what is said of *prompt* at *candidate*.

        Args:
            candidate: The worker.
            replica_id: Its name in the index.
            prompt: As its set sees it.
            now_ns: Monotonic time.

        Complexity: O(log stretches).
        """
        parts, name = self._parts, candidate.name
        index_tokens = precise = 0
        found = prompt.index.get(replica_id)
        if found is not None:
            index_tokens = min(found.tokens, prompt.tokens_max)
            share = self._shares.get(found.tier, self._coldest_share)
            trust = parts.audit.trust(name, PrefixSource.PRECISE)
            precise = int(index_tokens * share * trust)
        is_heard = False
        if prompt.is_answered:
            seen_ns = parts.sightings.seen_ns.get(replica_id)
            is_heard = seen_ns is not None and now_ns - seen_ns < parts.settings.index_stale_ns
        memory = PrefixSource.SPECULATIVE if is_heard else PrefixSource.APPROXIMATE
        keys, stretch_tokens = prompt.keys
        held = parts.blocks.held(name, keys, now_ns, is_expected=is_heard)
        if not held and not index_tokens:
            return NO_CLAIM
        memory_tokens = min(held * stretch_tokens, prompt.tokens_max)
        remembered = memory_tokens
        if held and not is_heard:
            remembered = int(memory_tokens * parts.audit.trust(name, memory))
        match = NO_MATCH
        if remembered > precise:
            match = CandidateMatch(matched_tokens=remembered, source=memory)
        elif precise:
            match = CandidateMatch(matched_tokens=precise, source=PrefixSource.PRECISE)
        return Claim(index_tokens, memory_tokens, memory, match)
