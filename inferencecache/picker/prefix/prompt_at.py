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
        counted_tokens: Its length as the engines count it; None if that is not known.
        question: What the index was asked; None if it was not.
        index: What it says, by replica.
        is_answered: Whether the index was asked and has answered.
        is_comparable: Whether its answer is about the whole prompt.
    """

    keys: BlockKeys
    tokens_max: int
    counted_tokens: int | None = None
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
        self._doubted = parts.audit.doubted

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

        Complexity: O(members * runs of stretches); a claim is put together once for all members of
        whom the same is said.
        """
        heard_ns, index, is_answered = self._seen_ns.get, prompt.index, prompt.is_answered
        silent_ns, keys, blocks = now_ns - self._stale_ns, prompt.keys.keys, self._parts.blocks
        shelves, idle_ns, doubted = blocks.shelves, blocks.idle_since_ns(now_ns), self._doubted
        alike: dict[_Said, Claim] = {}
        for name, replica_id in members:
            shelf, found, held = shelves.get(name), index.get(replica_id), 0
            if shelf is None and found is None:
                continue
            is_heard = is_answered and heard_ns(replica_id, silent_ns) > silent_ns
            if shelf is not None:
                held = shelf.held(keys, now_ns if is_heard else idle_ns, is_expected=is_heard)
            said = (found, held, is_heard, name if name in doubted else "")
            claim = alike.get(said)
            if claim is None:
                claim = alike[said] = self._claim(prompt, said)
            if claim is not NO_CLAIM:
                claims[name] = claim
                if claim.match is not NO_MATCH:
                    matches[name] = claim.match

    def _claim(self, prompt: PromptAt, said: "_Said") -> Claim:
        """Return what is made of what is said of a worker; NO_CLAIM where nobody says anything."""
        found, held, is_heard, doubted = said
        if found is None and not held:
            return NO_CLAIM
        tokens_max, trust = prompt.tokens_max, self._parts.audit.trust
        index_tokens = precise = memory_tokens = remembered = 0
        if found is not None:
            index_tokens = min(found.tokens, tokens_max)
            precise = int(index_tokens * self._share(found) * trust(doubted, _PRECISE))
        memory = _SPECULATIVE if is_heard else _APPROXIMATE
        if held:
            memory_tokens = remembered = min(prompt.keys.tokens_of(held), tokens_max)
            if not is_heard:
                remembered = int(memory_tokens * trust(doubted, memory))
        match = NO_MATCH
        if remembered > precise:
            match = CandidateMatch(remembered, memory)
        elif precise:
            match = CandidateMatch(precise, _PRECISE)
        return Claim(index_tokens, memory_tokens, memory, match)

    def _share(self, found: IndexMatch) -> float:
        """Return what a token of a match counts: each as its tier does, on average."""
        shares, coldest = self._shares, self._coldest_share
        if not found.tiers:
            return shares.get(found.tier, coldest)
        counted = sum(blocks * shares.get(tier, coldest) for tier, blocks in found.tiers)
        return counted / sum(blocks for _, blocks in found.tiers)


_Said = tuple[IndexMatch | None, int, bool, str]
"""What the index says of a worker, how many stretches it was sent, whether it says itself what it
holds, and its name if claims about it have to be doubted; whatever is said of several is the same
claim for all of them."""
