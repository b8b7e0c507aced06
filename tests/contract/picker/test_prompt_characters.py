"""Prompts become blocks of characters where nobody here can know their tokens."""

import asyncio
from threading import Event

from fleets import row
from prompt_rig import chat, prompt_rig, question
from served_picker import until

from inferencecache.picker.prompt import NoBlocks

LONG = "The prefix index tells gateways where a prompt is warm. " * 200


async def test_characters_are_shared_by_nobody_else() -> None:
    """Another model, adapter or salt, another process: no block in common."""
    text = "Agents send their whole history with every request. " * 40
    body = chat(("user", text))
    async with prompt_rig() as rig, prompt_rig() as other:
        plain = await rig.characters(body)
        others = [
            await rig.characters(body, row("n")),
            await rig.characters(body, row("m", adapter_of="base")),
            await rig.characters({**body, "cache_salt": "s"}),
            await rig.characters({**body, "extra_key": "s"}),
            await rig.characters({**body, "cache_salt": "s" * 3_000}),
            await other.characters(body),
        ]
        firsts = [found.hashes[:8] for found in (plain, *others)]

        assert len(set(firsts)) == len(firsts)
        assert plain == await rig.characters({**body, "temperature": 1})
        assert (plain.is_exact, plain.block_tokens) == (False, 64)
        assert len(plain.hashes) // 8 == len(text) // 256
        assert len(text) / 4 < plain.prompt_tokens < len(text) / 4 + 10


async def test_characters_of_many_turns_are_written_beside_the_loop() -> None:
    """A body of megabytes with turns of a byte each is work for seconds; short ones go before."""
    many, released = chat(*[("user", "a")] * 3_000), Event()
    async with (
        prompt_rig(threads_max=1) as rig,
        prompt_rig(token_ids_inline_bytes_max=1_000_000) as at_once,
    ):
        rig.prompts._threads.begin(released.wait)
        long = asyncio.create_task(rig.characters(many))
        short = await rig.characters(chat(("user", LONG[:9_000])))
        assert not long.done()
        released.set()

        assert (await long).prompt_tokens == (await at_once.characters(many)).prompt_tokens == 5_250
        assert short.prompt_tokens > 2_000
        assert await rig.characters(many) == await long


async def test_characters_that_take_too_long_are_missing_until_they_are_there() -> None:
    """As tokens that take too long are."""
    many, released = chat(*[("user", "a")] * 3_000), Event()
    async with prompt_rig(threads_max=1, timeout_ns=20_000_000) as rig:
        rig.prompts._threads.begin(released.wait)
        found = await rig.prompts.reader.characters(question(many), row("m"))
        assert found == NoBlocks(why="tokenizer_timeout")
        released.set()
        await until(lambda: not rig.prompts.reader._work)

        assert (await rig.characters(many)).prompt_tokens == 5_250
        (line,) = rig.log.of("picker_prompt_without_tokens")
        assert (line["why"], line["worker_set"]) == ("tokenizer_timeout", "*/m")


async def test_a_very_long_prompt_has_blocks_for_its_beginning_only() -> None:
    """Its length is told all the same."""
    async with prompt_rig(character_bytes_max=1_000) as rig:
        found = await rig.characters({"model": "m", "prompt": "x" * 10_000})

        assert (len(found.hashes) // 8, found.prompt_tokens, found.cut) == (3, 2_500, "long")


async def test_tokens_are_as_long_as_the_setting_says() -> None:
    """So that what is warm is counted as the prompt is; ids are what they are."""
    text = "Agents send their whole history with every request. " * 40
    ids = {"model": "m", "prompt": list(range(640))}
    for bytes_per_token in (2, 4, 8):
        async with prompt_rig(bytes_per_token) as rig:
            found = await rig.characters({"model": "m", "prompt": text})
            assert found.prompt_tokens == len(text) // bytes_per_token
            assert len(found.hashes) // 8 == len(text) // bytes_per_token // 64
            counted = await rig.characters(ids)
            assert (counted.prompt_tokens, len(counted.hashes) // 8) == (640, 10)
