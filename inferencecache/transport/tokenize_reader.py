"""Turns prompts into blocks: from token ids, a tokenizer here, one at an engine, or characters.

Rules of this file: nothing of a prompt is kept but hashes under a name that says nothing about it,
nothing of it is logged, and nothing that a prompt, a model's files or an engine does comes out as
an exception.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.picker.choice import Question
from inferencecache.picker.fleet import ModelRow, ObjectName, WorkerSet
from inferencecache.picker.prompt.block_memory import BlockMemory
from inferencecache.picker.prompt.blocks import NoBlocks, PromptBlocks
from inferencecache.picker.prompt.characters import (
    TOKEN_ID_BYTES,
    character_blocks,
    character_seed,
    flattened,
)
from inferencecache.picker.prompt.conversation import TokenIdPrompt
from inferencecache.picker.prompt.history import Histories, Learned
from inferencecache.picker.prompt.prompt_body import PromptBody, prompt_body_of, read_prompt_body
from inferencecache.picker.prompt.prompt_digest import PromptName, PromptNames
from inferencecache.picker.prompt.read_prompt import (
    COMPUTES_ANEW,
    MALFORMED,
    TOO_LONG,
    computes_anew,
    holds_token_ids,
    read_prompt,
    without_prompt,
    without_tokens,
)
from inferencecache.picker.request import Api
from inferencecache.settings.picker_prompt import PickerPromptSettings
from inferencecache.transport import tokenize_catalog as catalog
from inferencecache.transport.metric_cells import Family
from inferencecache.transport.tokenize_engine import EngineTokenizer
from inferencecache.transport.tokenize_files import place_of
from inferencecache.transport.tokenize_guard import WorkFailure, guarded
from inferencecache.transport.tokenize_loading import engines_time
from inferencecache.transport.tokenize_plan import (
    IDS,
    Ask,
    Computed,
    Fetched,
    Learning,
    Plan,
    Result,
    engine_plan,
    local_plan,
    token_id_plan,
)
from inferencecache.transport.tokenize_shelf import Loaded, TokenizerShelf
from inferencecache.transport.tokenize_watch import TokenizeWatch
from inferencecache.transport.tokenize_work import (
    FAILED,
    TIMEOUT,
    Answer,
    Begun,
    Finish,
    TokenizeWork,
    in_task,
    in_thread,
)
from inferencecache.transport.work_threads import WorkThreads

MISSING: Final = NoBlocks(why="tokenizer_missing")
UNREADABLE: Final = NoBlocks(why="prompt_unreadable")
NO_BLOCK_SIZE: Final = NoBlocks(why="block_size_unknown")
NO_TOKENIZER: Final = NoBlocks(why="no_tokenizer", is_by_design=True)

_REMEMBERED: Final = "remembered"
_SLOW: Final = "too slow, or too many at a time"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptReaderParts:
    """What a reader works with.

    Attributes:
        settings: Limits.
        bytes_per_token: Of texts whose tokens nobody counts.
        clock: The time.
        shelf: The tokenizers of this process.
        engines: Asks engines.
        threads: Tokenize what is long.
        watch: Counts.
        secret: Random bytes of this process, 32 or more.
    """

    settings: PickerPromptSettings
    bytes_per_token: int
    clock: Clock
    shelf: TokenizerShelf
    engines: EngineTokenizer
    threads: WorkThreads
    watch: TokenizeWatch
    secret: bytes


class TokenizingReader:
    """A :class:`~inferencecache.picker.prompt.PromptReader`.

    Args:
        parts: Its collaborators.
    """

    def __init__(self, parts: PromptReaderParts) -> None:
        self._parts = parts
        self._settings = parts.settings
        self._names = PromptNames(parts.secret)
        self._memory = BlockMemory(parts.settings.cache_bytes_max)
        self._learning = Learning(Histories(parts.settings.history_bytes_max), parts.secret)
        self._timeout_s = parts.settings.timeout_ns / NS_PER_S
        self._work = TokenizeWork(parts.settings.waiting_max, self._timeout_s)

    async def blocks(self, question: Question, worker_set: WorkerSet, row: ModelRow) -> Answer:
        """Return the blocks as the engines of *worker_set* would name them for model *row*."""
        answer, by = await self._answer(question, worker_set, row)
        self._parts.watch.answered(answer.why if isinstance(answer, NoBlocks) else by)
        return answer

    async def characters(self, question: Question, row: ModelRow) -> Answer:
        """Return blocks of characters, to be compared with nothing but their like."""
        api, body = question.request.api, self._body(question)
        if isinstance(body, NoBlocks):
            return body
        why = COMPUTES_ANEW if computes_anew(api, body) else without_prompt(api, body)
        if why:
            return NoBlocks(why=why, is_by_design=True)
        seed = character_seed(self._parts.secret, row, body.salt)
        name = self._names.name_of(body, f"characters {api} {seed}".encode()).whole
        known = self._memory.find(name)
        if known is not None:
            return known
        compute = partial(guarded, partial(self._characters, api, body, seed))
        if body.length <= self._settings.token_ids_inline_bytes_max:
            return self._written(name, row, compute())
        begin = in_thread(self._parts.threads, compute, partial(self._written, name, row))
        answer = await self._work.answer(name, begin)
        if answer is TIMEOUT:
            self._parts.watch.failed(_of_characters(row), TIMEOUT.why, _SLOW)
        return answer

    def adopt(self, worker_sets: Iterable[WorkerSet]) -> None:
        """Begin to load the tokenizers of *worker_sets*, and let go of all others."""
        self._parts.shelf.adopt(place_of(found) for found in worker_sets if found.tokenizer)

    def lacks_tokenizer(self, worker_set: WorkerSet) -> bool:
        """Return whether *worker_set* has a tokenizer that could not be loaded."""
        return bool(worker_set.tokenizer) and self._parts.shelf.lacks(place_of(worker_set))

    def families(self) -> list[Family]:
        """Return a copy of all numbers."""
        watch = self._parts.watch
        return [
            Family(catalog.PROMPTS, watch.results()),
            Family(catalog.TOKENIZE_LATENCY, spreads=watch.durations()),
            Family(
                catalog.PROMPT_CACHE_BYTES,
                {
                    ("prompts",): self._memory.used_bytes,
                    ("histories",): self._learning.histories.used_bytes,
                },
            ),
            Family(catalog.TOKENIZERS, {(): len(self._parts.shelf)}),
        ]

    async def stop(self) -> None:
        """End what is under way."""
        await self._work.stop()

    def _written(self, name: bytes, row: ModelRow, made: Answer | WorkFailure) -> Answer:
        """Return blocks of characters, remembered, or said to have failed."""
        if isinstance(made, WorkFailure):
            self._parts.watch.failed(_of_characters(row), UNREADABLE.why, made.summary)
            return UNREADABLE
        if isinstance(made, PromptBlocks):
            self._memory.keep(name, made)
        return made

    def _characters(self, api: Api, body: PromptBody, seed: int) -> Answer:
        prompt = read_prompt(api, body)
        if isinstance(prompt, NoBlocks):
            return prompt
        holds_ids, bytes_max = isinstance(prompt, TokenIdPrompt), self._settings.character_bytes_max
        bytes_per_token = TOKEN_ID_BYTES if holds_ids else self._parts.bytes_per_token
        return character_blocks(flattened(prompt), bytes_max, seed, bytes_per_token)

    def _body(self, question: Question) -> PromptBody | NoBlocks:
        if question.content.length > self._settings.body_bytes_max:
            return TOO_LONG
        if question.top_level is not None:
            return prompt_body_of(question.top_level)
        return read_prompt_body(question.content.join()) or MALFORMED

    async def _answer(
        self, question: Question, worker_set: WorkerSet, row: ModelRow
    ) -> tuple[Answer, str]:
        """Return the answer, and in a word where it came from."""
        ask = self._ask(question, worker_set, row)
        plan = ask if isinstance(ask, NoBlocks) else await self._plan(ask)
        if isinstance(ask, NoBlocks) or isinstance(plan, NoBlocks):
            return (plan if isinstance(plan, NoBlocks) else TIMEOUT), ""
        named = self._names.name_of(ask.body, plan.context)
        name = named.whole
        known = self._memory.find(name)
        if known is not None:
            return known, _REMEMBERED
        if isinstance(plan, Computed) and ask.body.length <= self._inline_bytes_max(plan):
            started_ns = self._parts.clock.monotonic_ns()
            result = plan.compute(named.beginnings)
            return self._settled(name, ask, plan, started_ns, result), plan.by
        answer = await self._work.answer(name, partial(self._begin, named, ask, plan))
        if answer is TIMEOUT:
            self._parts.watch.failed(worker_set.key, TIMEOUT.why, _SLOW)
        return answer, plan.by

    def _ask(self, question: Question, worker_set: WorkerSet, row: ModelRow) -> Ask | NoBlocks:
        api, body = question.request.api, self._body(question)
        if isinstance(body, NoBlocks):
            return body
        why = without_tokens(api, body)
        if why:
            return NoBlocks(why=why, is_by_design=True)
        if worker_set.block_size_tokens is None:
            has_source = worker_set.tokenizer or worker_set.tokenize_url
            return NO_BLOCK_SIZE if has_source else NO_TOKENIZER
        return Ask(
            api=api,
            body=body,
            worker_set=worker_set,
            row=row,
            block_tokens=worker_set.block_size_tokens,
        )

    async def _plan(self, ask: Ask) -> Plan | NoBlocks:
        """Return the first way that is open."""
        worker_set = ask.worker_set
        if holds_token_ids(ask.api, ask.body):
            return token_id_plan(ask)
        if worker_set.tokenizer:
            loaded = await self._tokenizer(worker_set)
            if isinstance(loaded, Loaded):
                return local_plan(ask, loaded, self._learning)
            if not worker_set.tokenize_url:
                return loaded
        if not worker_set.tokenize_url:
            return NO_TOKENIZER
        date = engines_time(self._parts.clock).date().isoformat()
        return engine_plan(ask, self._parts.engines, date)

    async def _tokenizer(self, worker_set: WorkerSet) -> Loaded | NoBlocks:
        """Return the tokenizer of *worker_set*; waits only until it was loaded once."""
        shelf, place = self._parts.shelf, place_of(worker_set)
        loaded = shelf.ready(place)
        if loaded is not None:
            return loaded
        try:
            async with asyncio.timeout(self._timeout_s):
                return await shelf.find(place) or MISSING
        except TimeoutError:
            return TIMEOUT

    def _inline_bytes_max(self, plan: Plan) -> int:
        if plan.by == IDS:
            return self._settings.token_ids_inline_bytes_max
        return self._settings.inline_bytes_max

    def _begin(self, named: PromptName, ask: Ask, plan: Plan, finish: Finish) -> Begun:
        """Begin to follow *plan* while others go on."""
        started_ns = self._parts.clock.monotonic_ns()
        settle = partial(self._settled, named.whole, ask, plan, started_ns)
        if isinstance(plan, Fetched):
            return in_task(plan.fetch, settle)(finish)
        compute = partial(plan.compute, named.beginnings)
        return in_thread(self._parts.threads, compute, settle)(finish)

    def _settled(
        self, name: bytes, ask: Ask, plan: Plan, started_ns: int, result: Result
    ) -> Answer:
        """Return the answer that a plan led to, remembered, or said to have failed."""
        watch = self._parts.watch
        if isinstance(result, WorkFailure):
            watch.failed(ask.worker_set.key, FAILED.why, result.summary)
            return FAILED
        if isinstance(result, Learned):
            self._learning.histories.keep(result.text, result.former)
            result = result.blocks
        if isinstance(result, PromptBlocks):
            watch.took(plan.by, self._parts.clock.monotonic_ns() - started_ns)
            self._memory.keep(name, result)
        return result


def _of_characters(row: ModelRow) -> ObjectName:
    """Return what the log calls prompts for *row* that no worker set reads."""
    return ObjectName(namespace="*", name=row.name)
