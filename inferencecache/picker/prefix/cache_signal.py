"""The prefix signal: what the index, and the picker's own memory, know of a prompt.

Theory of operation: candidates are taken by worker set and model, since for all workers of a set a
prompt has the same blocks. Where the set goes by the index, the prompt is read into the blocks that
its engines would make, and the index is asked; where one of both cannot be had, the Pick is told
what is missing and goes by what went where. Nothing waits where everything is at hand: token ids or
a prompt seen before, and an index in this process.

Rules of this file
    1. Only blocks of exact tokens are compared with an index; characters have like to compare with.
    2. What a set does without by design is not missing: providers, sets that go by nothing, prompts
       that no cache is read for, and salted ones, of which an index cannot say whose they are.
    3. A healthy index in which nobody has the prompt is a full answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from inferencecache.clock import Clock
from inferencecache.picker.choice import Question
from inferencecache.picker.fleet import Candidate, ModelRow, PrefixUse, WorkerSet
from inferencecache.picker.prefix.block_keys import (
    CHARACTER_SCHEME,
    BlockKeys,
    CacheDomain,
    block_keys,
)
from inferencecache.picker.prefix.index_source import (
    COLD,
    IndexFlaw,
    IndexFound,
    IndexQuestion,
    IndexSource,
)
from inferencecache.picker.prefix.placed_prompt import LearningParts, SensedPrompt, SetOfModel
from inferencecache.picker.prefix.prompt_at import (
    Claim,
    ClaimParts,
    Claims,
    Named,
    PromptAt,
)
from inferencecache.picker.prefix.set_standing import SetStanding
from inferencecache.picker.prefix.signal import (
    NO_LENGTHS,
    NOTHING_FOUND,
    CandidateMatch,
    PrefixFound,
    PrefixSource,
)
from inferencecache.picker.prompt.blocks import NoBlocks, PromptBlocks, PromptReader
from inferencecache.settings.picker_prefix import PickerPrefixSettings

_TOKENIZER_MISSING: Final = "tokenizer_missing"
_NO_TOKENIZER: Final = "no_tokenizer"
_MEDIA: Final = "mm"

_NONE: Final = PrefixSource.NONE
_PRECISE: Final = PrefixSource.PRECISE
_APPROXIMATE: Final = PrefixSource.APPROXIMATE
_BY_NOTHING: Final = PrefixUse.NONE
_NO_KEYS: Final = BlockKeys(b"", 0)

_Counted = tuple[int, list[Named]]
"""A length of a prompt, and the workers whose engines count it so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSignalParts:
    """What the signal works with.

    Attributes:
        settings: Limits.
        clock: Monotonic time.
        reader: Turns prompts into blocks.
        index: Where it asks; None if there is none.
        standing: How worker sets stand to the index.
        claims: Puts together what is known of a worker.
        learning: Learns where prompts go.
    """

    settings: PickerPrefixSettings
    clock: Clock
    reader: PromptReader
    index: IndexSource | None
    standing: SetStanding
    claims: ClaimParts
    learning: LearningParts


class _Sense:
    """What is found out for one question, set by set.

    Args:
        question: The question.
        index_left_ns: Time that is left for the index.

    Attributes:
        prompts: The prompt as each set sees it.
        claims: What is said of it, by the candidate's name.
        matches: What is made of that; whoever has nothing is not in it.
        counted: Lengths of the prompt, each with the workers whose engines count it so.
        believed: The same where nobody counts it.
        degraded: What is missing, each once, in order.
        source: The best source that was asked.
    """

    __slots__ = (
        "believed",
        "claims",
        "counted",
        "degraded",
        "index_left_ns",
        "matches",
        "prompts",
        "question",
        "source",
    )

    def __init__(self, question: Question, index_left_ns: int) -> None:
        self.question = question
        self.index_left_ns = index_left_ns
        self.prompts: list[tuple[SetOfModel, PromptAt]] = []
        self.claims: dict[str, Claim] = {}
        self.matches: dict[str, CandidateMatch] = {}
        self.counted: list[_Counted] = []
        self.believed: list[_Counted] = []
        self.degraded: dict[str, None] = {}
        self.source = _NONE

    def asked(self, source: PrefixSource) -> None:
        """Note that *source* was asked; the index is the best there is."""
        if self.source is not _PRECISE:
            self.source = source


class CacheSignal:
    """Knows where prompts are warm; see :class:`PrefixSignal`.

    Args:
        parts: Its collaborators.
    """

    def __init__(self, parts: CacheSignalParts) -> None:
        self._parts = parts
        self._claims = Claims(parts.claims)

    async def sense(self, question: Question, candidates: Sequence[Candidate]) -> PrefixFound:
        """Return what is known of the prompt of *question*.

        Complexity: O(blocks + candidates * log stretches), and what the index takes.
        """
        groups = _by_set(candidates)
        if not groups:
            return NOTHING_FOUND
        sense = _Sense(question, self._parts.settings.index_timeout_ns)
        for (worker_set, row), members in groups:
            prompt = await self._read(sense, worker_set, row)
            if prompt is None:
                continue
            sense.prompts.append(((worker_set, row), prompt))
            if prompt.counted_tokens is None:
                sense.believed.append((prompt.tokens_max + 1, members))
            else:
                sense.counted.append((prompt.counted_tokens, members))
            now_ns = self._parts.clock.monotonic_ns()
            self._claims.add(sense.claims, sense.matches, members, prompt, now_ns)
        prompt_tokens = max((length for length, _ in sense.counted), default=None)
        if prompt_tokens is not None and sense.believed:
            _adjust(sense.matches, sense.believed, prompt_tokens)
        return PrefixFound(
            prompt_tokens=prompt_tokens,
            believed_tokens=max((length for length, _ in sense.believed), default=None),
            lengths=_lengths(sense.counted),
            matches=sense.matches,
            source=sense.source,
            degraded=tuple(sense.degraded),
            trace=SensedPrompt(self._parts.learning, sense.prompts, sense.claims),
        )

    async def _read(self, sense: _Sense, worker_set: WorkerSet, row: ModelRow) -> PromptAt | None:
        """Return the prompt as *worker_set* sees it, None where it goes by nothing."""
        if worker_set.prefix is _BY_NOTHING:
            return None
        is_salted = bool(sense.question.request.affinity.cache_salt)
        if is_salted or not self._parts.standing.asks_index(worker_set):
            return await self._by_characters(sense, worker_set, row)
        blocks = await self._parts.reader.blocks(sense.question, worker_set, row)
        if isinstance(blocks, NoBlocks):
            missing = _missing(blocks, worker_set)
            if missing:
                sense.degraded[missing] = None
            return await self._by_characters(sense, worker_set, row)
        if not blocks.is_exact:
            return await self._by_characters(sense, worker_set, row)
        return await self._by_tokens(sense, worker_set, row, blocks)

    async def _by_characters(
        self, sense: _Sense, worker_set: WorkerSet, row: ModelRow
    ) -> PromptAt | None:
        """Return the prompt for comparing it with what went where before."""
        blocks = await self._parts.reader.characters(sense.question, row)
        if isinstance(blocks, NoBlocks):
            if not blocks.is_by_design:
                sense.degraded[blocks.why] = None
            return None
        sense.asked(_APPROXIMATE)
        tenant_id = _tenant(sense.question, worker_set)
        domain = CacheDomain(tenant_id, row.name, CHARACTER_SCHEME, row.adapter_of)
        return PromptAt(keys=self._keys(blocks, domain), tokens_max=_tokens_max(blocks))

    async def _by_tokens(
        self, sense: _Sense, worker_set: WorkerSet, row: ModelRow, blocks: PromptBlocks
    ) -> PromptAt:
        """Return the prompt with what the index says of it."""
        if blocks.cut:
            sense.degraded[f"{blocks.cut}_truncated"] = None
        domain = CacheDomain(
            _tenant(sense.question, worker_set),
            row.adapter_of or row.name,
            worker_set.hash_scheme or worker_set.engine.value,
            row.name if row.adapter_of else "",
        )
        question = IndexQuestion(
            domain=domain,
            hashes=blocks.hashes,
            block_tokens=blocks.block_tokens,
            deadline_ns=self._parts.clock.monotonic_ns() + sense.index_left_ns,
        )
        found = await self._ask(sense, worker_set, question)
        if found.flaw is not None:
            sense.degraded[found.flaw.value] = None
        is_answered = found.flaw is None
        sense.asked(_PRECISE if is_answered else _APPROXIMATE)
        return PromptAt(
            keys=self._keys(blocks, domain),
            tokens_max=_tokens_max(blocks),
            counted_tokens=blocks.prompt_tokens,
            question=question if found.matches else None,
            index=found.matches,
            is_answered=is_answered,
            is_comparable=is_answered and not blocks.cut,
        )

    async def _ask(
        self, sense: _Sense, worker_set: WorkerSet, question: IndexQuestion
    ) -> IndexFound:
        parts = self._parts
        if parts.index is None or parts.standing.is_cold(worker_set):
            return COLD
        if not question.domain.tenant_id:
            return IndexFound(flaw=IndexFlaw.UNKNOWN_TENANT)
        if not question.hashes:
            return IndexFound()
        found = await parts.index.match(question)
        sense.index_left_ns = max(question.deadline_ns - parts.clock.monotonic_ns(), 0)
        return found

    def _keys(self, blocks: PromptBlocks, domain: CacheDomain) -> BlockKeys:
        if not blocks.hashes:
            return _NO_KEYS
        stretch_tokens_min = self._parts.settings.stretch_tokens_min
        return block_keys(blocks.hashes, blocks.block_tokens, stretch_tokens_min, domain)


_Group = tuple[SetOfModel, list[Named]]
"""A set's model, and its workers."""


def _by_set(candidates: Sequence[Candidate]) -> list[_Group]:
    """Return the workers among *candidates* by set and model; providers have no caches of ours."""
    groups: dict[tuple[int, int], _Group] = {}
    last_member, last_row, members = None, None, list[Named]()
    for candidate in candidates:
        known_as, member, row = candidate.known_as, candidate.member, candidate.model
        if known_as is None or not isinstance(member, WorkerSet):
            continue
        if member is not last_member or row is not last_row:
            last_member, last_row = member, row
            _, members = groups.setdefault((id(member), id(row)), ((member, row), []))
        members.append(known_as)
    return list(groups.values())


def _lengths(counted: Sequence[_Counted]) -> Mapping[str, int]:
    """Return the length at each worker, by its name, if it is not the same at all of them."""
    if len({length for length, _ in counted}) <= 1:
        return NO_LENGTHS
    return {name: length for length, members in counted for name, _ in members}


def _adjust(
    matches: dict[str, CandidateMatch], believed: Iterable[_Counted], prompt_tokens: int
) -> None:
    """Give who counts nothing the same share of a prompt whose length others know."""
    for length, members in believed:
        for name, _ in members:
            match = matches.get(name)
            if match is not None:
                tokens = match.matched_tokens * prompt_tokens // length
                matches[name] = CandidateMatch(tokens, match.source)


def _missing(blocks: NoBlocks, worker_set: WorkerSet) -> str:
    """Return what is missing where there are no blocks, empty for nothing."""
    if blocks.why == _MEDIA:
        return f"{_MEDIA}_truncated"
    if blocks.why == _NO_TOKENIZER and worker_set.prefix is PrefixUse.PRECISE:
        return _TOKENIZER_MISSING
    return "" if blocks.is_by_design else blocks.why


def _tenant(question: Question, worker_set: WorkerSet) -> str:
    return worker_set.index_tenant or question.tenant


def _tokens_max(blocks: PromptBlocks) -> int:
    return max(blocks.prompt_tokens - 1, 0)
