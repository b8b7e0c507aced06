"""From a prompt to its blocks.

Workload: the tokenizer and the chats of ``prompt_texts``. A chat of 10 KB; and an agent that sends
its whole history, 100,000 tokens of 4.5 bytes in turns of 6 KB, then the same and one turn more.
Processor time, since threads take part; tokenizing is what the tokenizer's own call takes.
Seed: ``workload.SEED``. Budget: 1 s per timing of the small prompts, the best of five of others.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time_ns

from benchmarks.measure import NS_PER_MS, median_us, require
from benchmarks.options import Options
from benchmarks.prompt_texts import Texts, chat_body, write_tokenizer
from benchmarks.row import Bound, Row
from benchmarks.workload import BLOCK_TOKENS, SEED
from inferencecache.app.picker_prompt import PickerPrompts
from inferencecache.picker.bodies import Rope
from inferencecache.picker.choice import Question
from inferencecache.picker.fleet import (
    EngineKind,
    ModelRow,
    ObjectName,
    PriorsForEngine,
    WorkerSet,
)
from inferencecache.picker.prompt.history import Histories, Learned
from inferencecache.picker.prompt.prompt_body import PromptBody, read_prompt_body
from inferencecache.picker.request import Api, parse_body
from inferencecache.settings.picker import PickerParseSettings
from inferencecache.settings.picker_prompt import PickerPromptSettings
from inferencecache.transport.structured_log import StructuredLog
from inferencecache.transport.system_clock import SystemClock
from inferencecache.transport.tokenize_files import TokenizerPlace
from inferencecache.transport.tokenize_guard import WorkFailure
from inferencecache.transport.tokenize_loading import load_guarded, load_limits
from inferencecache.transport.tokenize_plan import Ask, Learning, local_plan
from inferencecache.transport.tokenize_shelf import Loaded

_ROW = ModelRow(name="m")
_TURN_WORDS = 1_200
_AGENT_TURNS = 80
_TRIES = 5


def run(options: Options) -> Iterator[Row]:
    """Yield the rows of prompts."""
    with TemporaryDirectory() as directory:
        texts = Texts(random.Random(SEED))
        write_tokenizer(Path(directory), texts)
        yield from asyncio.run(_small(directory, texts, options))
        yield from _agent(directory, texts)


def _worker_set(directory: str) -> WorkerSet:
    return WorkerSet(
        key=ObjectName(namespace="default", name="w"),
        models=(_ROW,),
        endpoints=(),
        engine=EngineKind.VLLM,
        block_size_tokens=BLOCK_TOKENS,
        hash_scheme="",
        index_tenant="",
        tokenizer=directory,
        chat_template="",
        priors=PriorsForEngine(prefill_tokens_per_s=8_000, base_ttft_ms=50, concurrency_max=1),
    )


async def _small(directory: str, texts: Texts, options: Options) -> list[Row]:
    """Return the rows of a chat of 10 KB that was seen before."""
    data = chat_body([texts.of(170) for _ in range(12)])
    question = Question(request=parse_body(data, PickerParseSettings()), content=Rope([data]))
    prompts = PickerPrompts(
        PickerPromptSettings(timeout_ns=60 * 10**9), SystemClock(), StructuredLog()
    )
    members = _worker_set(directory)
    first = await prompts.reader.blocks(question, members, _ROW)

    first_characters = await prompts.reader.characters(question, _ROW)

    def again() -> object:
        return _at_once(prompts.reader.blocks(question, members, _ROW))

    def characters_again() -> object:
        return _at_once(prompts.reader.characters(question, _ROW))

    require(again() == first, "what was seen before is remembered, without waiting")
    require(characters_again() == first_characters, "so are blocks of characters")
    size = f"{len(data) / 1_000:.3g} KB"
    rows = [
        Row(
            what="blocks of a chat that was seen before",
            unit="us",
            value=median_us(again, options.budget_s),
            bound=Bound.AT_MOST,
            target=100,
            note=size,
        ),
        Row(
            what="blocks of characters of a chat that was seen before",
            unit="us",
            value=median_us(characters_again, options.budget_s),
            note=size,
        ),
    ]
    await prompts.stop()
    return rows


def _at_once(steps: Coroutine[object, object, object]) -> object:
    """Return what *steps* come to, None if they wait."""
    try:
        steps.send(None)
    except StopIteration as ended:
        return ended.value
    return None


@dataclass
class _Timed:
    """A tokenizer in memory whose own calls are timed.

    Attributes:
        loaded: It.
        tokenized_ns: What its calls took.
    """

    loaded: Loaded
    tokenized_ns: int = field(default=0)

    def __post_init__(self) -> None:
        encode = self.loaded.tokenizer.encode

        def timed(texts: list[str]) -> list[list[int]]:
            started_ns = process_time_ns()
            encoded = encode(texts)
            self.tokenized_ns += process_time_ns() - started_ns
            return encoded

        self.loaded.tokenizer.encode = timed  # type: ignore[method-assign] # to be timed

    def read(self, data: bytes, histories: Histories) -> tuple[Learned, float, float]:
        """Return blocks of a body, and the processor time of all and of tokenizing, in ms."""
        started_ns, self.tokenized_ns = process_time_ns(), 0
        ask = _ask(read_prompt_body(data))
        learned = local_plan(ask, self.loaded, Learning(histories, b"k" * 32)).compute()
        all_ms = (process_time_ns() - started_ns) / NS_PER_MS
        require(isinstance(learned, Learned), "a conversation has blocks")
        assert isinstance(learned, Learned)  # noqa: S101 - for the type checker
        return learned, all_ms, self.tokenized_ns / NS_PER_MS


def _ask(body: PromptBody | None) -> Ask:
    require(body is not None, "the body can be read")
    assert body is not None  # noqa: S101 - for the type checker
    return Ask(
        api=Api.CHAT_COMPLETIONS,
        body=body,
        worker_set=_worker_set(""),
        row=_ROW,
        block_tokens=BLOCK_TOKENS,
    )


def _agent(directory: str, texts: Texts) -> Iterator[Row]:
    """Yield the rows of a history that goes on."""
    limits = load_limits(PickerPromptSettings(), SystemClock())
    tokenizer = load_guarded(TokenizerPlace(directory, ""), limits)
    if isinstance(tokenizer, WorkFailure):
        raise tokenizer.error
    timed = _Timed(Loaded(tokenizer, 1))
    turns = [texts.of(_TURN_WORDS) for _ in range(_AGENT_TURNS + 1)]
    before, after = chat_body(turns[:-1]), chat_body(turns)
    whole, *_ = timed.read(after, Histories(0))

    def first() -> tuple[float, float]:
        return timed.read(before, Histories(0))[1:]

    def further() -> tuple[float, float]:
        histories = Histories(1 << 30)
        learned, *_ = timed.read(before, histories)
        histories.keep(learned.text, learned.former)
        found, *times = timed.read(after, histories)
        require(found.blocks == whole.blocks, "what goes on has the blocks of the whole")
        return times[0], times[1]

    for what, read in (("of an agent's history", first), ("of it and one turn more", further)):
        all_ms, tokenized_ms = _best(read)
        note = f"{whole.blocks.prompt_tokens:,} tokens; tokenizing {tokenized_ms:.3g} ms"
        yield Row(what=f"blocks {what}", unit="ms", value=all_ms, note=note)
        yield Row(
            what=f"blocks {what}, without tokenizing",
            unit="ms",
            value=all_ms - tokenized_ms,
            bound=Bound.AT_MOST,
            target=3 if read is further else None,
        )


def _best(read: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    return min(read() for _ in range(_TRIES))
