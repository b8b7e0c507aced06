"""A prompt as one worker set sees it, and what is claimed of each of its workers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from inferencecache.picker.prefix.audit import CacheAudit
from inferencecache.picker.prefix.block_keys import BlockKeys
from inferencecache.picker.prefix.index_source import NO_INDEX_MATCHES, IndexMatch, IndexQuestion
from inferencecache.picker.prefix.picked_blocks import PickedBlocks
from inferencecache.picker.prefix.sightings import Sightings
from inferencecache.picker.prefix.signal import NO_MATCH, CandidateMatch, PrefixSource
from inferencecache.settings.picker_prefix import PickerPrefixSettings
from inferencecache.types import CacheTier

_PRECISE: Final = PrefixSource.PRECISE
_SPECULATIVE: Final = PrefixSource.SPECULATIVE
_APPROXIMATE: Final = PrefixSource.APPROXIMATE
"""Looking them up takes as long as a whole worker."""

Named = tuple[str, str]
"""A worker's name as a candidate, and its name in the index."""


class PromptAt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt at one worker set.

    Attributes:
        keys: Its stretches.
        tokens_max: Most tokens that can be warm: the last one is always computed.
        question: What the index was asked; None if it was not.
        index: What it says, by replica.
        is_answered: Whether the index was asked and has answered.
        is_comparable: Whether its answer is about the whole prompt.
    """

    keys: BlockKeys
    tokens_max: int
    question: IndexQuestion | None = None
    index: Mapping[str, IndexMatch] = NO_INDEX_MATCHES
    is_answered: bool = False
    is_comparable: bool = False


class Claim(msgspec.Struct, frozen=True, gc=False):
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
        self._seen_ns = parts.sightings.seen_ns
        self._stale_ns = settings.index_stale_ns

    def add(
        self,
        claims: dict[str, Claim],
        matches: dict[str, CandidateMatch],
        members: Iterable[Named],
        prompt: PromptAt,
        now_ns: int,
    ) -> None:
        """Add what is said of *prompt* at *members*, where anything is.

        Args:
            claims: By the candidate's name.
            matches: What is made of them; whoever has nothing is not in it.
            members: Workers of one set.
            prompt: As that set sees it.
            now_ns: Monotonic time.

        Complexity: O(members * runs of stretches).
        """
        heard_ns, index, is_answered = self._seen_ns.get, prompt.index, prompt.is_answered
        silent_ns, keys = now_ns - self._stale_ns, prompt.keys.keys
        shelves, held_by = self._parts.blocks.shelves, self._parts.blocks.held
        for name, replica_id in members:
            is_heard = is_answered and heard_ns(replica_id, silent_ns) > silent_ns
            held = held_by(name, keys, now_ns, is_expected=is_heard) if name in shelves else 0
            found = index.get(replica_id)
            if held or found is not None:
                claim = claims[name] = self._claim(name, prompt, found, held, is_heard)
                if claim.match is not NO_MATCH:
                    matches[name] = claim.match

    def _claim(
        self,
        name: str,
        prompt: PromptAt,
        found: IndexMatch | None,
        held: int,
        is_heard: bool,  # noqa: FBT001 - private
    ) -> Claim:
        """Return what is said of a worker.

        Args:
            name: The candidate's name.
            prompt: As its set sees it.
            found: What the index says.
            held: Stretches that it was sent.
            is_heard: Whether it says itself what it holds.
        """
        trust, tokens_max = self._parts.audit.trust, prompt.tokens_max
        index_tokens = precise = memory_tokens = remembered = 0
        if found is not None:
            index_tokens, tier = found
            index_tokens = min(index_tokens, tokens_max)
            share = self._shares.get(tier, self._coldest_share) * trust(name, _PRECISE)
            precise = int(index_tokens * share)
        memory = _SPECULATIVE if is_heard else _APPROXIMATE
        if held:
            memory_tokens = remembered = min(prompt.keys.tokens_of(held), tokens_max)
            if not is_heard:
                remembered = int(memory_tokens * trust(name, memory))
        match = NO_MATCH
        if remembered > precise:
            match = CandidateMatch(remembered, memory)
        elif precise:
            match = CandidateMatch(precise, _PRECISE)
        return Claim(index_tokens, memory_tokens, memory, match)
