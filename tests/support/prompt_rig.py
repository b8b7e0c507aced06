"""A reader of prompts as the server has it, and bodies to give it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from fleets import row, worker_set
from log_lines import LogLines

from inferencecache.app.picker_prompt import PickerPrompts
from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.picker.bodies import Rope
from inferencecache.picker.choice import Question
from inferencecache.picker.fleet import EngineKind, ModelRow, WorkerSet
from inferencecache.picker.prompt import NoBlocks, PromptBlocks
from inferencecache.picker.prompt.conversation import Conversation
from inferencecache.picker.prompt.prompt_body import read_prompt_body
from inferencecache.picker.prompt.read_prompt import read_prompt
from inferencecache.picker.request import parse_body
from inferencecache.settings.picker import PickerParseSettings
from inferencecache.settings.picker_prompt import PickerPromptSettings

MODEL = row("m")
BLOCK_TOKENS = 4
PATIENT_NS = 60 * NS_PER_S
LATER_NS = 4_000_000_000 * NS_PER_S
"""When every file has rested."""


def question(body: object) -> Question:
    """Return what is asked with *body*: bytes, or an object to be written as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Question(request=parse_body(data, PickerParseSettings()), content=Rope([data]))


def chat(*turns: tuple[str, object], **further: object) -> dict[str, object]:
    """Return a body of chat completions."""
    messages = [{"role": role, "content": content} for role, content in turns]
    return {"model": "m", "messages": messages, **further}


def conversation(body: object) -> Conversation:
    """Return the conversation that *body* holds."""
    asked = question(body)
    keys = read_prompt_body(asked.content.join())
    assert keys is not None
    prompt = read_prompt(asked.request.api, keys)
    assert isinstance(prompt, Conversation)
    return prompt


def engines(
    *addresses: str,
    tokenizer: Path | str = "",
    url: str = "",
    engine: EngineKind = EngineKind.VLLM,
    block_tokens: int | None = BLOCK_TOKENS,
    template: Path | str = "",
) -> WorkerSet:
    """Return a worker set."""
    return replace(
        worker_set("w", MODEL, addresses=addresses),
        tokenizer=str(tokenizer),
        tokenize_url=url,
        engine=engine,
        block_size_tokens=block_tokens,
        chat_template=str(template),
    )


@dataclass
class PromptRig:
    """A reader and what it is made with.

    Attributes:
        prompts: It, with its threads and connections.
        clock: Stands still.
        log: What it wrote.
    """

    prompts: PickerPrompts
    clock: ManualClock
    log: LogLines = field(default_factory=LogLines)

    async def blocks(self, body: object, members: WorkerSet) -> PromptBlocks | NoBlocks:
        """Return the blocks of *body* for a worker set."""
        return await self.prompts.reader.blocks(question(body), members, members.models[0])

    async def exact(self, body: object, members: WorkerSet) -> PromptBlocks:
        """Return the blocks, which there must be."""
        found = await self.blocks(body, members)
        assert isinstance(found, PromptBlocks), found
        return found

    async def why(self, body: object, members: WorkerSet) -> tuple[str, bool]:
        """Return why there are none, and whether that is by design."""
        found = await self.blocks(body, members)
        assert isinstance(found, NoBlocks), found
        return found.why, found.is_by_design

    async def characters(self, body: object, model: ModelRow = MODEL) -> PromptBlocks:
        """Return blocks of characters, which there must be."""
        found = await self.prompts.reader.characters(question(body), model)
        assert isinstance(found, PromptBlocks), found
        return found

    def results(self) -> dict[str, float]:
        """Return how often what happened."""
        (family,) = (
            family
            for family in self.prompts.families()
            if family.spec.name == "inferencecache_picker_prompts_total"
        )
        return {labels[0]: value for labels, value in family.numbers.items()}


@asynccontextmanager
async def prompt_rig(bytes_per_token: int = 4, **settings: int) -> AsyncIterator[PromptRig]:
    """Have a reader, with these settings; it is patient, as machines that run tests are slow."""
    clock, log = ManualClock(LATER_NS), LogLines()
    limits = PickerPromptSettings(**{"timeout_ns": PATIENT_NS, **settings})
    prompts = PickerPrompts(limits, clock, log, bytes_per_token)
    try:
        yield PromptRig(prompts, clock, log)
    finally:
        await prompts.stop()
