"""Ways from a prompt to blocks, each with all that tells its results from those of others."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import msgspec

from inferencecache.errors import InvalidRequestError
from inferencecache.picker.fleet import ModelRow, WorkerSet
from inferencecache.picker.prompt.blocks import NoBlocks, PromptBlocks
from inferencecache.picker.prompt.conversation import Conversation, TextPrompt, TokenIdPrompt
from inferencecache.picker.prompt.further_turns import further_blocks, taken_up, with_turns
from inferencecache.picker.prompt.history import (
    Histories,
    KnownText,
    Learned,
    TextNames,
    text_blocks,
)
from inferencecache.picker.prompt.prompt_body import PromptBody
from inferencecache.picker.prompt.read_prompt import MALFORMED, read_prompt
from inferencecache.picker.prompt.token_blocks import Tokens, token_blocks
from inferencecache.picker.request import Api
from inferencecache.transport.tokenize_engine import EngineTokenizeError, EngineTokenizer
from inferencecache.transport.tokenize_guard import WorkFailure, guarded
from inferencecache.transport.tokenize_shelf import Loaded

IDS: Final = "token_ids"
LOCAL: Final = "local"
ENGINE: Final = "engine"

_STEPS_MIN: Final = 2_000
"""Steps of a template for what stands in no body, beside one for each byte that does."""

Result = PromptBlocks | NoBlocks | Learned | WorkFailure
Fetch = Callable[[], Coroutine[Any, Any, Result]]

NO_FIRST_TURN: Final = NoBlocks(why="mm", is_by_design=True)
"""Of a prompt whose first turn has a picture, where an engine would have to tokenize it."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for.

    Attributes:
        api: What the body is meant for.
        body: All of it that makes the prompt.
        worker_set: Whose blocks they shall be.
        row: For which of its models.
        block_tokens: Tokens per block.
    """

    api: Api
    body: PromptBody
    worker_set: WorkerSet
    row: ModelRow
    block_tokens: int


class Compute(Protocol):
    """Does work of this process, in any thread."""

    def __call__(self, beginnings: Sequence[bytes] = (), /) -> Result:
        """Return what it comes to.

        Args:
            beginnings: Names of what the prompt begins with; the last one is that of all its turns.
        """
        ...


class Computed(msgspec.Struct, frozen=True, kw_only=True):
    """A way to blocks by work of this process.

    Attributes:
        by: Who tokenizes, in a word.
        context: Tells its results from those of other ways for the same body.
        compute: Does it.
    """

    by: str
    context: bytes
    compute: Compute


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A way to blocks by asking somebody.

    Attributes:
        by: Who tokenizes, in a word.
        context: Tells its results from those of other ways for the same body.
        fetch: Asks.
    """

    by: str
    context: bytes
    fetch: Fetch


Plan = Computed | Fetched


def token_id_plan(ask: Ask) -> Computed:
    """Return the way for token ids in the body: they are the engine's already."""

    def compute(_beginnings: Sequence[bytes] = (), /) -> Result:
        prompt = read_prompt(ask.api, ask.body)
        if not isinstance(prompt, TokenIdPrompt):
            return MALFORMED
        try:
            return token_blocks(Tokens(token_ids=prompt.token_ids), ask.block_tokens)
        except InvalidRequestError:
            return MALFORMED

    return Computed(by=IDS, context=_context("ids", ask), compute=compute)


@dataclass(frozen=True, slots=True)
class Learning:
    """What a tokenizer of this process goes on from.

    Attributes:
        histories: Texts that were tokenized; only read here.
        key: Of their names.
    """

    histories: Histories
    key: bytes


def local_plan(ask: Ask, loaded: Loaded, learning: Learning) -> Computed:
    """Return the way by a tokenizer of this process.

    Args:
        ask: What is asked for.
        loaded: The tokenizer.
        learning: What it goes on from.
    """

    def compute(beginnings: Sequence[bytes]) -> Result:
        names = beginnings if ask.api is Api.CHAT_COMPLETIONS else ()
        known = learning.histories.find_beginning(names)
        further = None if known is None else _gone_on(known, names[-1], ask, loaded)
        if further is not None:
            return further
        prompt = read_prompt(ask.api, ask.body)
        if isinstance(prompt, NoBlocks):
            return prompt
        if isinstance(prompt, TokenIdPrompt):
            return MALFORMED
        if isinstance(prompt, TextPrompt) or prompt.adds_special_tokens:
            tokens = loaded.tokenizer.tokens(prompt, ask.worker_set.engine, _steps_max(ask))
            return token_blocks(tokens, ask.block_tokens)
        return _written_whole(prompt, names, ask, loaded, learning)

    def guarded_compute(beginnings: Sequence[bytes] = (), /) -> Result:
        return guarded(lambda: compute(beginnings))

    source = f"local {loaded.number} {ask.worker_set.engine} {loaded.tokenizer.date}"
    return Computed(by=LOCAL, context=_context(source, ask), compute=guarded_compute)


def _gone_on(known: KnownText, name: bytes, ask: Ask, loaded: Loaded) -> Learned | None:
    """Return the blocks of a conversation of which only further turns are written; None if not so.

    Args:
        known: What is known of its text.
        name: Of all its turns.
        ask: What is asked for.
        loaded: The tokenizer.
    """
    at = taken_up(known, ask.block_tokens)
    if at is None:
        return None
    first, *_ = turns = ask.body.turns
    body = msgspec.structs.replace(ask.body, turns=[first, *turns[at.turn :]])
    prompt = read_prompt(ask.api, body)
    tokenizer = loaded.tokenizer
    if not isinstance(prompt, Conversation) or not tokenizer.may_go_on(prompt, known.characters):
        return None
    text, _, starts = tokenizer.written(prompt, ask.worker_set.engine, _steps_max(ask))
    if not starts:
        return None
    pieces = tokenizer.pieces(text[starts[1] + at.offset :])
    learned = further_blocks(at, pieces, tokenizer.encode, ask.block_tokens)
    if learned is None:
        return None
    return with_turns(learned, name, pieces, [place - starts[1] for place in starts[1:]], at)


def _written_whole(
    conversation: Conversation,
    beginnings: Sequence[bytes],
    ask: Ask,
    loaded: Loaded,
    learning: Learning,
) -> Learned:
    """Return the blocks of a conversation, of which only what is new is tokenized."""
    tokenizer = loaded.tokenizer
    text, behind, starts = tokenizer.written(conversation, ask.worker_set.engine, _steps_max(ask))
    pieces = tokenizer.pieces(text)
    context = f"{loaded.number} {ask.block_tokens}".encode()
    names = TextNames(learning.key, context).names_of(pieces)
    former = learning.histories.find(names)
    learned = text_blocks(pieces, names, former, tokenizer.encode, ask.block_tokens)
    if starts and beginnings:
        return with_turns(learned, beginnings[-1], pieces, starts)
    if behind is None:
        return learned
    further = sum(map(len, tokenizer.encode([behind])))
    tokens = learned.blocks.prompt_tokens + further
    return replace(learned, blocks=replace(learned.blocks, prompt_tokens=tokens, cut="mm"))


def engine_plan(ask: Ask, engines: EngineTokenizer, date: str) -> Fetched:
    """Return the way by an engine's own tokenizer.

    Args:
        ask: What is asked for.
        engines: Asks it.
        date: Today's; the engine's template may write it, which nobody here can see.
    """

    async def fetch() -> Result:
        prompt = guarded(lambda: read_prompt(ask.api, ask.body))
        if isinstance(prompt, NoBlocks | WorkFailure):
            return prompt
        if isinstance(prompt, TokenIdPrompt):
            return MALFORMED
        if not isinstance(prompt, TextPrompt) and prompt.first_media == 0:
            return NO_FIRST_TURN
        try:
            tokens = await engines.tokens(prompt, ask.worker_set, ask.row.name)
        except EngineTokenizeError as error:
            return WorkFailure(error, error.reason)
        return token_blocks(tokens, ask.block_tokens)

    worker_set = ask.worker_set
    source = f"engine {worker_set.key} {worker_set.generation} {date} {ask.row.name}"
    return Fetched(by=ENGINE, context=_context(source, ask), fetch=fetch)


def _steps_max(ask: Ask) -> int:
    """Return how many steps a template may take: short prompts are written on the event loop."""
    return _STEPS_MIN + ask.body.length


def _context(source: str, ask: Ask) -> bytes:
    return f"{ask.block_tokens} {ask.api} {source}".encode()
