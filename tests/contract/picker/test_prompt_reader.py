"""Prompts become the blocks that engines name: by token ids and by tokenizers of this process."""

import asyncio
import gc
import json
from dataclasses import replace
from pathlib import Path
from threading import Event
from weakref import ref

import msgspec
import pytest
from fleets import row
from prompt_rig import BLOCK_TOKENS, chat, engines, prompt_rig, question
from served_picker import until
from small_tokenizers import BOS, EOS, TURN, plain_blocks, write_tokenizer

from inferencecache.clock import NS_PER_S
from inferencecache.picker.fleet import EngineKind
from inferencecache.picker.prompt import NoBlocks, PromptBlocks
from inferencecache.picker.request.envelope import read_top_level

LONG = "The prefix index tells gateways where a prompt is warm. " * 200
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]


@pytest.mark.parametrize("prompt", [list(range(11)), [list(range(11)), [7, 8, 9]]])
async def test_token_ids_are_blocks_without_any_tokenizer(prompt: list[object]) -> None:
    """Of several prompts the first counts; no tokenizer is configured, and none is missing."""
    async with prompt_rig() as rig:
        found = await rig.exact({"model": "m", "prompt": prompt}, engines())

        assert found == plain_blocks(list(range(11)), BLOCK_TOKENS)
        assert rig.results() == {"token_ids": 1}


async def test_the_example_of_the_page() -> None:
    """The fingerprint's own, as docs/picker.md has it."""
    async with prompt_rig() as rig:
        found = await rig.exact({"model": "m", "prompt": [1, 2, 3, 4, 5]}, engines(block_tokens=2))

        assert found.hashes.hex(" ", 8) == "9581a6bbf9cef45a 51bdd8da9da7a8e2"
        assert found.prompt_tokens == 5


@pytest.mark.parametrize("prompt", [[1, 2, 3], [[1, 2, 3]], 5], ids=repr)
async def test_a_prompt_beside_turns_is_not_looked_at(tmp_path: Path, prompt: object) -> None:
    """Engines ignore what a request of their API does not have."""
    write_tokenizer(tmp_path)
    members = engines(tokenizer=tmp_path)
    async with prompt_rig() as rig:
        found = await rig.exact(chat(("user", "hi"), prompt=prompt), members)

        assert found == await rig.exact(chat(("user", "hi")), members)


@pytest.mark.parametrize(
    "body",
    [{"model": "m", "prompt": list(range(3_000))}, chat(("user", LONG), ("assistant", LONG))],
    ids=["token_ids", "chat"],
)
async def test_nothing_of_a_body_lives_on_with_its_blocks(tmp_path: Path, body: object) -> None:
    """What was read goes with the question, without a collector to find it."""
    write_tokenizer(tmp_path)
    members = engines(tokenizer=tmp_path)
    asked = question(body)
    top_level = read_top_level(asked.content.join())
    asked = msgspec.structs.replace(asked, top_level=top_level)
    keys = ref(top_level.keys)
    async with prompt_rig(threads_max=1, token_ids_inline_bytes_max=100) as rig:
        gc.disable()
        try:
            found = await rig.prompts.reader.blocks(asked, members, members.models[0])
            assert isinstance(found, PromptBlocks)
            await rig.prompts.reader.characters(asked, members.models[0])
            done = Event()
            rig.prompts._threads.begin(done.set)
            assert done.wait(30), "the thread has gone on"
            del asked, top_level
            assert keys() is None
        finally:
            gc.enable()


async def test_many_token_ids_are_hashed_beside_the_loop() -> None:
    """They are the same blocks, from a thread."""
    token_ids = [(7 * number) % 50_000 for number in range(3_000)]
    async with prompt_rig(token_ids_inline_bytes_max=100) as rig:
        found = await rig.exact({"model": "m", "prompt": token_ids}, engines())

        assert found == plain_blocks(token_ids, BLOCK_TOKENS)


@pytest.mark.parametrize("prompt", [[1, 2**32], [-1, 5], [1.5], [[], []], [], [1, "a"], [[1], 2]])
async def test_what_engines_refuse_has_no_blocks_and_lacks_nothing(prompt: list[object]) -> None:
    """A prompt that is none is the engine's to refuse; the picker does not fall over it."""
    async with prompt_rig() as rig:
        found = await rig.blocks({"model": "m", "prompt": prompt}, engines(url="http://{address}"))

        assert isinstance(found, PromptBlocks) or found.is_by_design


async def test_a_conversation_is_written_by_its_template_and_gets_no_second_beginning(
    tmp_path: Path,
) -> None:
    """The template writes the first token, so that the tokenizer must not add it once more."""
    tokenizer = write_tokenizer(tmp_path)
    text = f"{BOS}{TURN}user\nwarm?{EOS}{TURN}assistant\n"
    token_ids = tokenizer.encode(text, add_special_tokens=False).ids
    async with prompt_rig() as rig:
        found = await rig.exact(chat(("user", "warm?")), engines(tokenizer=tmp_path))

        assert found == plain_blocks(token_ids, BLOCK_TOKENS)
        assert token_ids.count(tokenizer.token_to_id(BOS)) == 1


@pytest.mark.parametrize("adds", [None, True, False])
async def test_a_text_gets_its_beginning_unless_the_client_says_no(
    tmp_path: Path, *, adds: bool | None
) -> None:
    """Engines add special tokens to texts by default."""
    tokenizer = write_tokenizer(tmp_path)
    said = {} if adds is None else {"add_special_tokens": adds}
    token_ids = tokenizer.encode("where a prompt is warm", add_special_tokens=adds is not False).ids
    async with prompt_rig() as rig:
        body = {"model": "m", "prompt": ["where a prompt is warm", "another"], **said}
        found = await rig.exact(body, engines(tokenizer=tmp_path))

        assert found == plain_blocks(token_ids, BLOCK_TOKENS)
        assert (token_ids[0] == tokenizer.token_to_id(BOS)) == (adds is not False)


async def test_a_config_that_wants_a_beginning_gets_one(tmp_path: Path) -> None:
    """Some tokenizers leave it to their config; a text that begins with it gets no second."""
    tokenizer = write_tokenizer(tmp_path, add_bos_token=True)
    stripped = json.loads((tmp_path / "tokenizer.json").read_text())
    stripped["post_processor"] = None
    (tmp_path / "tokenizer.json").write_text(json.dumps(stripped))
    bos = tokenizer.token_to_id(BOS)
    plain = tokenizer.encode("where a prompt is warm", add_special_tokens=False).ids
    async with prompt_rig() as rig:
        members = engines(tokenizer=tmp_path)
        for text in ("where a prompt is warm", f"{BOS}where a prompt is warm"):
            found = await rig.exact({"model": "m", "prompt": text}, members)
            assert found == plain_blocks([bos, *plain], BLOCK_TOKENS)


async def test_a_long_prompt_is_tokenized_in_a_thread_and_remembered(tmp_path: Path) -> None:
    """The second time nothing is tokenized; the same turns in another body are another prompt."""
    tokenizer = write_tokenizer(tmp_path)
    text = f"{BOS}{TURN}user\n{LONG}{EOS}{TURN}assistant\n"
    token_ids = tokenizer.encode(text, add_special_tokens=False).ids
    async with prompt_rig() as rig:
        members = engines(tokenizer=tmp_path)
        for temperature in (0, 1):
            found = await rig.exact(chat(("user", LONG), temperature=temperature), members)
            assert found == plain_blocks(token_ids, BLOCK_TOKENS)
        await rig.exact(chat(("user", LONG), add_generation_prompt=False), members)

        assert rig.results() == {"local": 2, "remembered": 1}


@pytest.mark.parametrize(
    "further",
    [
        {"tools": TOOLS},
        {"add_generation_prompt": False},
        {"continue_final_message": True},
        {"add_special_tokens": True},
        {"chat_template_kwargs": {"bos_token": ""}},
    ],
    ids=str,
)
async def test_whatever_changes_tokens_is_not_mistaken_for_what_is_remembered(
    tmp_path: Path, further: dict[str, object]
) -> None:
    """A prompt and its like with another switch have other blocks, in either order."""
    write_tokenizer(tmp_path)
    members = engines(tokenizer=tmp_path, block_tokens=1)
    body = chat(("user", "where a prompt is warm"))
    async with prompt_rig() as rig, prompt_rig() as other:
        plain = await rig.exact(body, members)
        changed = await rig.exact({**body, **further}, members)

        assert changed != plain
        assert changed == await other.exact({**body, **further}, members)


async def test_block_sizes_and_engines_are_not_mixed_up(tmp_path: Path) -> None:
    """What is remembered for one set is not told of another."""
    write_tokenizer(tmp_path)
    body = chat(("user", "where a prompt is warm"), tools=TOOLS)
    async with prompt_rig() as rig:
        vllm = await rig.exact(body, engines(tokenizer=tmp_path))
        wider = await rig.exact(body, engines(tokenizer=tmp_path, block_tokens=8))
        sglang = await rig.exact(body, engines(tokenizer=tmp_path, engine=EngineKind.SGLANG))

        assert (vllm.block_tokens, wider.block_tokens) == (4, 8)
        assert vllm.prompt_tokens == wider.prompt_tokens
        assert sglang.hashes != vllm.hashes, "they write tools in another order"


async def test_one_prompt_asked_for_by_many_is_tokenized_once(tmp_path: Path) -> None:
    """A burst of the same prompt costs one tokenization."""
    write_tokenizer(tmp_path)
    members = engines(tokenizer=tmp_path)
    async with prompt_rig(cache_bytes_max=0) as rig:
        await rig.exact({"model": "m", "prompt": "load"}, members)
        found = await asyncio.gather(*(rig.exact(chat(("user", LONG)), members) for _ in range(9)))
        (family,) = (
            family
            for family in rig.prompts.families()
            if family.spec.name == "inferencecache_picker_tokenize_seconds"
        )

        assert len({blocks.hashes for blocks in found}) == 1
        assert sum(family.spreads[("local",)].counts) == 2


async def test_a_tokenization_that_takes_too_long_is_there_for_the_next(tmp_path: Path) -> None:
    """The Pick goes on without; the work is not thrown away, and one line tells of it."""
    write_tokenizer(tmp_path)
    members, released = engines(tokenizer=tmp_path), Event()
    async with prompt_rig(threads_max=1, timeout_ns=20_000_000) as rig:
        while isinstance(await rig.blocks({"model": "m", "prompt": "load"}, members), NoBlocks):
            assert rig.prompts.reader._parts.shelf._slots, "it is being loaded"
        rig.prompts._threads.begin(released.wait)
        assert await rig.why(chat(("user", LONG)), members) == ("tokenizer_timeout", False)
        assert await rig.why(chat(("user", LONG)), members) == ("tokenizer_timeout", False)
        released.set()
        await until(lambda: not rig.prompts.reader._work)
        await rig.exact(chat(("user", LONG)), members)

        assert rig.results()["remembered"] == 1
        lines = rig.log.of("picker_prompt_without_tokens")
        assert (lines[-1]["why"], lines[-1]["worker_set"]) == ("tokenizer_timeout", "default/w")
        assert len(lines) == 1


async def test_more_than_may_wait_go_without_at_once(tmp_path: Path) -> None:
    """A queue that only grows helps nobody."""
    write_tokenizer(tmp_path)
    members, released = engines(tokenizer=tmp_path), Event()
    async with prompt_rig(threads_max=1, waiting_max=1) as rig:
        await rig.exact({"model": "m", "prompt": "load"}, members)
        rig.prompts._threads.begin(released.wait)
        first = asyncio.create_task(rig.exact(chat(("user", LONG)), members))
        await asyncio.sleep(0)
        assert await rig.why(chat(("user", f"{LONG}!")), members) == ("tokenizer_timeout", False)
        released.set()

        assert (await first).prompt_tokens > 1_000


async def test_a_picture_ends_the_blocks_and_does_not_hide_what_comes_before(
    tmp_path: Path,
) -> None:
    """Engines put what a picture shows into the blocks that hold it; nobody here can."""
    tokenizer = write_tokenizer(tmp_path)
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    turns = (("system", LONG), ("user", [{"type": "text", "text": "what is it?"}, picture]))
    before = f"{BOS}{TURN}system\n{LONG}{EOS}{TURN}user\n"
    token_ids = tokenizer.encode(before, add_special_tokens=False).ids
    async with prompt_rig() as rig:
        found = await rig.exact(chat(*turns), engines(tokenizer=tmp_path))

        assert found.cut == "mm"
        assert found.hashes == plain_blocks(token_ids, BLOCK_TOKENS).hashes
        assert found.prompt_tokens > len(token_ids)


async def test_an_answer_goes_on_where_its_last_turn_ends(tmp_path: Path) -> None:
    """Nothing that the template writes behind that turn is in the prompt."""
    tokenizer = write_tokenizer(tmp_path)
    text = f"{BOS}{TURN}user\ncount{EOS}{TURN}assistant\none, two,"
    token_ids = tokenizer.encode(text, add_special_tokens=False).ids
    async with prompt_rig() as rig:
        body = chat(("user", "count"), ("assistant", "one, two,"), continue_final_message=True)

        found = await rig.exact(body, engines(tokenizer=tmp_path))
        assert found == plain_blocks(token_ids, BLOCK_TOKENS)


async def test_a_template_may_do_more_for_a_longer_prompt(tmp_path: Path) -> None:
    """What is written on the event loop is not held up by a template that repeats much."""
    loops = "{% for i in range(5000) %}{% endfor %}{{ messages[-1].content }}"
    write_tokenizer(tmp_path / "t", chat_template=loops)
    members = engines(tokenizer=tmp_path / "t")
    async with prompt_rig() as rig, prompt_rig(template_steps_max=4_999) as strict:
        await rig.exact(chat(("user", "a" * 5_000)), members)
        for found in (
            await rig.why(chat(("user", "a" * 1_000)), members),
            await strict.why(chat(("user", "a" * 5_000)), members),
        ):
            assert found == ("tokenizer_failed", False)


@pytest.mark.parametrize(
    "template",
    [
        "{{ 1 / 0 }}",
        "{{ raise_exception('no ' + messages[0].content) }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{{ messages.append(1) }}",
        "{{ messages.__class__.__mro__ }}",
        "{% for i in range(100000) %}{{ 'x' * 1000 }}{% endfor %}",
        "{{ undefined_function() }}",
    ],
    ids=lambda value: value[:20],
)
async def test_a_template_that_fails_is_counted_and_quotes_nothing(
    tmp_path: Path, template: str
) -> None:
    """It may divide by nothing, refuse, go on for ever or reach for what it must not have."""
    write_tokenizer(tmp_path / "t", chat_template=template)
    members = engines(tokenizer=tmp_path / "t")
    async with prompt_rig(rendered_characters_max=10_000) as rig:
        for _ in range(3):
            body = chat(("user", "my secret"))
            assert await rig.why(body, members) == ("tokenizer_failed", False)

        (line,) = rig.log.of("picker_prompt_without_tokens")
        assert line["why"] == "tokenizer_failed"
        assert "secret" not in rig.log.text
        assert rig.results() == {"tokenizer_failed": 3}


async def test_a_model_without_a_template_serves_texts_only(tmp_path: Path) -> None:
    """Base models have none."""
    write_tokenizer(tmp_path, chat_template=None)
    async with prompt_rig() as rig:
        members = engines(tokenizer=tmp_path)

        assert await rig.why(chat(("user", "a")), members) == ("tokenizer_failed", False)
        assert (await rig.exact({"model": "m", "prompt": "a"}, members)).prompt_tokens == 2


async def test_nothing_of_a_prompt_stays_behind(tmp_path: Path) -> None:
    """What is remembered are hashes under names made with a key that nobody has."""
    write_tokenizer(tmp_path)
    members = engines(tokenizer=tmp_path)
    async with prompt_rig() as rig, prompt_rig() as other:
        body = chat(("user", "a prompt that is nobody's business"))
        await rig.exact(body, members)
        await rig.characters(body)
        await other.exact(body, members)
        kept, others = (found.prompts.reader._memory._blocks for found in (rig, other))

        assert "business" not in repr(kept)
        assert len(kept) == 2
        assert not set(kept) & set(others), "the same prompt has other names elsewhere"


async def test_a_template_that_writes_the_date_is_not_remembered_for_ever(tmp_path: Path) -> None:
    """Tomorrow's prompt is another one."""
    write_tokenizer(tmp_path, chat_template="{{ strftime_now('%d %b %Y') }}")
    members = engines(tokenizer=tmp_path)
    async with prompt_rig() as rig:
        await rig.exact(chat(("user", "a")), members)
        await rig.exact(chat(("user", "a")), members)
        rig.clock.advance_ns(24 * 3_600 * NS_PER_S)
        await rig.exact(chat(("user", "a")), members)

        assert rig.results() == {"local": 2, "remembered": 1}


async def test_adapters_are_named_by_whoever_asks(tmp_path: Path) -> None:
    """Blocks of an adapter are those of its base; their partition tells them apart."""
    write_tokenizer(tmp_path)
    adapter = row("a", adapter_of="m")
    members = engines(tokenizer=tmp_path)
    members = replace(members, models=(*members.models, adapter))
    async with prompt_rig() as rig:
        asked = question(chat(("user", "where a prompt is warm")))
        found = [await rig.prompts.reader.blocks(asked, members, model) for model in members.models]

        assert found[0] == found[1]
