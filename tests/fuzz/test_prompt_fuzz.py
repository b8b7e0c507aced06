"""Whatever a body holds, its prompt is blocks or a reason why not, never an exception."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_rig import BLOCK_TOKENS, MODEL, engines, prompt_rig, question
from small_tokenizers import write_tokenizer

from inferencecache.picker.fleet import EngineKind
from inferencecache.picker.prompt import NoBlocks, PromptBlocks
from inferencecache.picker.prompt.characters import character_blocks, flattened
from inferencecache.picker.prompt.conversation import Conversation, TextPrompt
from inferencecache.picker.prompt.history import Histories, Learned
from inferencecache.picker.prompt.prompt_body import read_prompt_body
from inferencecache.picker.prompt.prompt_digest import PromptNames
from inferencecache.picker.prompt.read_prompt import holds_token_ids, read_prompt, without_tokens
from inferencecache.picker.request import BadBodyError
from inferencecache.transport.tokenize_engine import tokenize_question
from inferencecache.transport.tokenize_files import LoadLimits, TokenizerPlace
from inferencecache.transport.tokenize_guard import WorkFailure
from inferencecache.transport.tokenize_local import load_tokenizer
from inferencecache.transport.tokenize_plan import Ask, Learning, local_plan, token_id_plan
from inferencecache.transport.tokenize_shelf import Loaded

LEARNING = Learning(Histories(1 << 20), b"k" * 32)
FIELD = Path(__file__).parents[1] / "data" / "field" / "bodies"
KEYS = [
    "messages",
    "prompt",
    "input",
    "system",
    "instructions",
    "tools",
    "tool_choice",
    "documents",
    "reasoning_effort",
    "chat_template",
    "chat_template_kwargs",
    "add_generation_prompt",
    "continue_final_message",
    "add_special_tokens",
    "truncate_prompt_tokens",
    "prompt_logprobs",
    "echo",
    "logprobs",
    "previous_response_id",
    "conversation",
    "cache_salt",
    "extra_key",
]
INNER = [
    "role",
    "content",
    "type",
    "text",
    "name",
    "function",
    "arguments",
    "tool_calls",
    "tool_call_id",
    "id",
    "image_url",
    "url",
    "parameters",
    "description",
    "strict",
    "input",
    "tool_use_id",
    "call_id",
    "output",
    "refusal",
    "thinking",
    "bos_token",
    "messages",
    "raise_exception",
]
WORDS = [
    "user",
    "assistant",
    "system",
    "tool",
    "text",
    "image_url",
    "input_audio",
    "tool_use",
    "tool_result",
    "function_call",
    "function_call_output",
    "reasoning",
    "message",
    "function",
    "none",
    "auto",
    "required",
    "input_text",
    "thinking",
]
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**30, 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=40)
    | st.sampled_from([*WORDS, "\ud800", "x\udfff", "\ue000 inferencecache: media \ue001", "{}"])
)
names = st.sampled_from(INNER) | st.text(max_size=3)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5),
    max_leaves=25,
)
turns = st.lists(
    st.dictionaries(names, values, max_size=4)
    | st.fixed_dictionaries({"role": st.sampled_from(WORDS), "content": values}),
    max_size=4,
)
bodies = st.fixed_dictionaries(
    {"model": st.just("m")},
    optional={
        **dict.fromkeys(KEYS, values),
        "messages": turns,
        "input": turns | values,
        "tools": turns | values,
        "chat_template_kwargs": st.dictionaries(st.sampled_from(INNER), values, max_size=3),
    },
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Have a small tokenizer."""
    directory = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(directory)
    return directory


@pytest.fixture(scope="module")
def loaded(directory: Path) -> Loaded:
    """Have it in memory."""
    limits = LoadLimits(
        file_bytes_max=1 << 24,
        characters_max=1 << 20,
        steps_max=1_000_000,
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
    )
    return Loaded(load_tokenizer(TokenizerPlace(str(directory), ""), limits), 1)


def check(data: bytes, loaded: Loaded) -> None:
    """Read *data* in every way, unless it is no request at all."""
    try:
        api = question(data).request.api
    except BadBodyError:
        return
    body = read_prompt_body(data)
    assert body is not None
    assert len(PromptNames(b"k" * 32).name_of(body, b"").whole) == 32
    assert set(without_tokens(api, body)) <= set("abcdefghijklmnopqrstuvwxyz_")
    prompt = read_prompt(api, body)
    if not isinstance(prompt, NoBlocks):
        check_answer(character_blocks(flattened(prompt), 2_000, 5, 4))
    for engine in EngineKind:
        ask = Ask(
            api=api,
            body=body,
            worker_set=engines(engine=engine),
            row=MODEL,
            block_tokens=BLOCK_TOKENS,
        )
        has_ids = holds_token_ids(api, body)
        plan = token_id_plan(ask) if has_ids else local_plan(ask, loaded, LEARNING)
        found = plan.compute()
        if isinstance(found, Learned):
            LEARNING.histories.keep(found.text, found.former)
            found = found.blocks
        check_answer(found)
        if isinstance(prompt, Conversation | TextPrompt):
            assert msgspec.json.encode(tokenize_question(prompt, engine, "m"))


def check_answer(found: PromptBlocks | NoBlocks | WorkFailure) -> None:
    """Check that an answer is whole; templates may refuse what they do not know."""
    if isinstance(found, NoBlocks):
        assert found.why.replace("_", "").isalnum()
    elif isinstance(found, PromptBlocks):
        assert len(found.hashes) % 8 == 0
        assert len(found.hashes) // 8 * found.block_tokens <= found.prompt_tokens
        assert found.cut in {"", "mm", "long"}
    else:
        assert found.summary


@given(bodies)
def test_odd_bodies_have_blocks_or_a_reason(loaded: Loaded, body: dict[str, Any]) -> None:
    """Keys that are known, with values that nobody expects."""
    check(json.dumps(body).encode(), loaded)


@given(bodies, st.integers(0, 400), st.binary(max_size=3))
def test_broken_bodies_have_blocks_or_a_reason(
    loaded: Loaded, body: dict[str, Any], at: int, put_in: bytes
) -> None:
    """Bytes in the middle of it that do not belong there."""
    data = json.dumps(body).encode()
    at %= len(data)
    check(data[:at] + put_in + data[at:], loaded)


@pytest.mark.parametrize("path", sorted(FIELD.glob("*.json")), ids=lambda path: path.stem)
async def test_bodies_from_the_field_have_blocks_or_a_reason(
    directory: Path, loaded: Loaded, path: Path
) -> None:
    """Those that made others fall over."""
    data = await asyncio.to_thread(path.read_bytes)
    check(data, loaded)
    try:
        asked = question(data)
    except BadBodyError:
        return
    async with prompt_rig() as rig:
        members = engines(tokenizer=directory)
        check_answer(await rig.prompts.reader.blocks(asked, members, MODEL))
        check_answer(await rig.prompts.reader.characters(asked, MODEL))
