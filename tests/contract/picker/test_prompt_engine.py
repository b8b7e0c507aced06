"""Prompts become blocks by an engine's own tokenizer, over HTTP."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web
from prompt_rig import BLOCK_TOKENS, chat, engines, prompt_rig
from small_tokenizers import BOS, EOS, TURN, plain_blocks, trained, write_tokenizer
from tokenizing_engine import TokenizingEngine, tokenizing_engine

from inferencecache.clock import NS_PER_S
from inferencecache.picker.fleet import EngineKind
from inferencecache.picker.prompt import NoBlocks

URL = "http://{address}/tokenize"
PICTURE = {"type": "image_url", "image_url": {"url": "http://picture"}}


async def test_a_conversation_has_the_tokens_that_its_engine_says() -> None:
    """The engine is asked with the model's own name there, once for the same prompt."""
    tokenizer = trained()
    async with tokenizing_engine(tokenizer) as engine, prompt_rig() as rig:
        members = engines(engine.address, url=URL)
        body = chat(("system", "be brief"), ("user", "warm?"), seed=1)
        found = await rig.exact(body, members)
        again = await rig.exact({**body, "seed": 2}, members)

        text = f"{BOS}{TURN}system\nbe brief{EOS}{TURN}user\nwarm?{EOS}{TURN}assistant\n"
        token_ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert found == again == plain_blocks(token_ids, BLOCK_TOKENS)
        assert engine.questions == [
            {
                "model": "m",
                "messages": [
                    {"role": "system", "content": "be brief"},
                    {"role": "user", "content": "warm?"},
                ],
                "add_generation_prompt": True,
                "continue_final_message": False,
                "add_special_tokens": False,
            }
        ]
        assert rig.results() == {"engine": 1, "remembered": 1}


async def test_an_engine_is_asked_again_on_another_day() -> None:
    """Its template may write the date; what it said yesterday would match nothing any more."""
    tokenizer, days = trained(), ["Monday", "Tuesday"]
    async with tokenizing_engine(tokenizer) as engine, prompt_rig() as rig:

        async def dated(request: web.Request) -> web.Response:
            (turn,) = (await request.json())["messages"]
            text = f"{BOS}{days[0]}{turn['content']}"
            return web.json_response({"tokens": tokenizer.encode(text).ids})

        engine.answering = dated
        members, body = engines(engine.address, url=URL), chat(("user", "where it is warm"))
        monday = await rig.exact(body, members)
        assert await rig.exact(body, members) == monday
        del days[0]
        rig.clock.advance_ns(24 * 3_600 * NS_PER_S)
        tuesday = await rig.exact(body, members)

        token_ids = tokenizer.encode(f"{BOS}Tuesdaywhere it is warm").ids
        assert tuesday == plain_blocks(token_ids, BLOCK_TOKENS) != monday
        assert rig.results() == {"engine": 2, "remembered": 1}


async def test_a_text_is_asked_for_as_it_stands() -> None:
    """Special tokens and all."""
    tokenizer = trained()
    async with tokenizing_engine(tokenizer) as engine, prompt_rig() as rig:
        members = engines(
            engine.address, url="http://{host}:" + engine.address.split(":")[1] + "/tokenize"
        )
        found = await rig.exact({"model": "m", "prompt": "where it is warm"}, members)

        assert found == plain_blocks(tokenizer.encode("where it is warm").ids, BLOCK_TOKENS)
        assert engine.questions == [
            {"model": "m", "prompt": "where it is warm", "add_special_tokens": True}
        ]


async def test_sglang_is_asked_in_its_own_words() -> None:
    """It knows which tool has to be called, and no switch for the answer's head."""
    async with tokenizing_engine(trained()) as engine, prompt_rig() as rig:
        members = engines(engine.address, url=URL, engine=EngineKind.SGLANG)
        await rig.exact(
            chat(("user", "a"), tools=[{"type": "function"}], tool_choice="auto"), members
        )

        (question,) = engine.questions
        assert question["tool_choice"] == "auto"
        assert question["tools"] == [{"type": "function"}]
        assert not {"add_generation_prompt", "add_special_tokens"} & set(question)


async def test_connections_stay_open() -> None:
    """Ten prompts one after the other, one connection."""
    async with tokenizing_engine(trained()) as engine, prompt_rig() as rig:
        members = engines(engine.address, url=URL)
        for number in range(10):
            await rig.exact(chat(("user", str(number))), members)

        assert (len(engine.questions), len(engine.peers)) == (10, 1)


async def test_workers_take_turns_and_a_dead_one_costs_no_prompt() -> None:
    """Where one does not answer, the next one is asked."""
    tokenizer = trained()
    async with (
        tokenizing_engine(tokenizer) as first,
        tokenizing_engine(tokenizer) as second,
        prompt_rig() as rig,
    ):
        members = engines(first.address, second.address, "127.0.0.1:1", url=URL)
        for number in range(9):
            await rig.exact(chat(("user", str(number))), members)

        assert sorted(map(len, (first.questions, second.questions))) == [3, 6]


async def test_an_engine_helps_out_where_a_tokenizer_cannot_be_read(tmp_path: Path) -> None:
    """And is left alone where one can."""
    write_tokenizer(tmp_path / "there")
    async with tokenizing_engine(trained()) as engine, prompt_rig() as rig:
        for name in ("gone", "there"):
            members = engines(engine.address, url=URL, tokenizer=tmp_path / name)
            await rig.exact(chat(("user", "a")), members)

        assert rig.results() == {"engine": 1, "local": 1}
        assert len(engine.questions) == 1


async def test_no_picture_is_sent_anywhere() -> None:
    """The turns before it are, without the head of an answer."""
    tokenizer = trained()
    async with tokenizing_engine(tokenizer) as engine, prompt_rig() as rig:
        members = engines(engine.address, url=URL)
        turns = (("system", "look"), ("user", [PICTURE, {"type": "text", "text": "what?"}]))
        found = await rig.exact(chat(*turns), members)
        token_ids = tokenizer.encode(f"{BOS}{TURN}system\nlook{EOS}", add_special_tokens=False).ids

        assert found.hashes == plain_blocks(token_ids, BLOCK_TOKENS).hashes
        assert found.cut == "mm"
        assert found.prompt_tokens > len(token_ids)
        assert engine.questions[0]["messages"] == [{"role": "system", "content": "look"}]
        assert await rig.why(chat(("user", [PICTURE])), members) == ("mm", True)
        assert len(engine.questions) == 1


@pytest.mark.parametrize("bytes_per_token", [2, 4, 8])
async def test_what_stands_behind_a_picture_is_as_long_as_the_setting_says(
    bytes_per_token: int,
) -> None:
    """Nobody counts it, and it counts against windows and in estimates."""
    async with tokenizing_engine(trained()) as engine, prompt_rig(bytes_per_token) as rig:
        turns = (("system", "look"), ("user", [PICTURE, {"type": "text", "text": "x" * 4_000}]))
        found = await rig.exact(chat(*turns), engines(engine.address, url=URL))
        counted = len(engine.token_ids(engine.questions[0]))
        heads = found.prompt_tokens - counted - 4_000 // bytes_per_token
        assert 0 <= heads <= 40 // bytes_per_token


def answer(body: bytes, status: int = 200) -> object:
    """Return what answers with *body*."""

    async def answering(_: web.Request) -> web.Response:
        return web.Response(body=body, status=status)

    return answering


async def redirect(_: web.Request) -> web.StreamResponse:
    """Send the prompt elsewhere."""
    raise web.HTTPTemporaryRedirect("/elsewhere")


async def cut(request: web.Request) -> web.StreamResponse:
    """End in the middle."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"tokens": [')
    assert request.transport is not None
    request.transport.abort()
    return response


@pytest.mark.parametrize(
    "answering",
    [
        answer(b"", 404),
        answer(b"{}"),
        answer(b"[1, 2]"),
        answer(b'{"tokens": [1, "a"]}'),
        answer(b'{"tokens": [1.5]}'),
        answer(b'{"tokens": [[1], [2]]}'),
        answer(b'{"tokens": [-1, 1, 2, 3, 4]}'),
        answer(b'{"tokens": [4294967296, 1, 2, 3]}'),
        answer(b'{"tokens": "\xff"}'),
        answer(b'{"tokens": []}'),
        answer(b'{"tokens": [], "count": 0}'),
        answer(b'{"tokens": [1, 2, 3, 4, -1]}'),
        answer(b'{"tokens": [1, 4294967296]}'),
        answer(b'{"tokens": [1, 18446744073709551616]}'),
        answer(b'{"tokens": [1, true]}'),
        answer(b'{"tokens": [1, 2, 3, 4], "count": 5}'),
        answer(b'{"tokens": [1, 2, 3, 4], "count": 0}'),
        answer(b'{"tokens": [1], "count": true}'),
        answer(b'{"tokens": [1], "count": "1"}'),
        answer(b'{"tokens": [1], "deep": ' + b"[" * 9_000),
        answer(b'{"tokens": [' + b"1," * 9_000 + b"1]}"),
        redirect,
        cut,
    ],
    ids=[
        "404",
        "none",
        "list",
        "text",
        "float",
        "lists",
        "below",
        "above",
        "bytes",
        "empty",
        "empty-counted",
        "below-in-a-part",
        "above-in-a-part",
        "far-above",
        "truth",
        "count-above",
        "count-nothing",
        "count-truth",
        "count-text",
        "deep",
        "long",
        "redirect",
        "cut",
    ],
)
async def test_an_answer_that_is_none_is_counted_and_says_nothing_of_the_prompt(
    answering: object,
) -> None:
    """Whatever engines or what stands in their place say."""
    async with tokenizing_engine(trained()) as engine, prompt_rig(answer_bytes_max=10_000) as rig:
        engine.answering = answering  # type: ignore[assignment] # one of those above
        members = engines(engine.address, url=URL)
        for number in range(3):
            body = chat(("user", f"secret {number}"))
            assert await rig.why(body, members) == ("tokenizer_failed", False)

        (line,) = rig.log.of("picker_prompt_without_tokens")
        assert line["worker_set"] == "default/w"
        assert "secret" not in rig.log.text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"tokens": []}', "an answer of no tokens to a prompt that has text"),
        (b'{"tokens": [1, 2, 3], "count": 4}', "an answer of 3 tokens that counts 4"),
        (
            b'{"tokens": [1], "count": ' + b"9" * 100 + b"}",
            "an answer without tokens: Expected `int` <= 4294967295 - at `$.count`",
        ),
        (
            b'{"tokens": [1, 2, 3, 4, -1]}',
            "an answer without tokens: Expected `int` >= 0 - at `$.tokens[4]`",
        ),
        (
            b'{"tokens": [1, 4294967296]}',
            "an answer without tokens: Expected `int` <= 4294967295 - at `$.tokens[1]`",
        ),
        (
            b'{"tokens": null}',
            "an answer without tokens: Expected `array`, got `null` - at `$.tokens`",
        ),
    ],
    ids=["empty", "count", "count-long", "below", "above", "null"],
)
@pytest.mark.parametrize(
    "prompt", [chat(("user", "a")), {"model": "m", "prompt": "a"}], ids=["turns", "text"]
)
async def test_the_log_says_what_is_wrong_with_an_answer(
    prompt: dict[str, object], body: bytes, words: str
) -> None:
    """And the next worker is asked for what the first one got wrong."""
    tokenizer = trained()
    async with (
        tokenizing_engine(tokenizer) as wrong,
        tokenizing_engine(tokenizer) as right,
        prompt_rig() as rig,
    ):
        wrong.answering = answer(body)  # type: ignore[assignment] # as above
        assert await rig.why(prompt, engines(wrong.address, url=URL)) == ("tokenizer_failed", False)
        (line,) = rig.log.of("picker_prompt_without_tokens")
        assert line["worker_set"] == "default/w"
        assert line["error"] == words

        found = await rig.exact(prompt, engines(wrong.address, right.address, url=URL))
        token_ids = right.token_ids(right.questions[0])
        assert found == plain_blocks(token_ids, BLOCK_TOKENS)
        assert (len(wrong.questions), len(right.questions)) == (2, 1)


@pytest.mark.parametrize("count", [b"", b', "count": null', b', "count": 5'])
async def test_an_engine_need_not_count(count: bytes) -> None:
    """A count that is not said, or right, takes nothing from the tokens; largest ids are some."""
    async with tokenizing_engine(trained()) as engine, prompt_rig() as rig:
        reply = b'{"tokens": [0, 1, 2, 3, 4294967295]' + count + b"}"
        engine.answering = answer(reply)  # type: ignore[assignment] # as above
        found = await rig.exact(chat(("user", "a")), engines(engine.address, url=URL))

        assert found == plain_blocks([0, 1, 2, 3, 4_294_967_295], BLOCK_TOKENS)


@pytest.mark.parametrize(
    "prompt",
    [
        {"model": "m", "prompt": ""},
        chat(("user", "")),
        chat(("system", "look"), ("user", [PICTURE])),
    ],
    ids=["text", "turn", "picture"],
)
async def test_nothing_may_have_no_tokens(prompt: dict[str, object]) -> None:
    """A prompt without text, or turns that a template writes only with those behind them."""
    async with tokenizing_engine(trained()) as engine, prompt_rig() as rig:
        engine.answering = answer(b'{"tokens": [], "count": 0}')  # type: ignore[assignment] # as above
        found = await rig.exact(prompt, engines(engine.address, url=URL))

        assert len(engine.questions) == 1
        assert found.hashes == plain_blocks([], BLOCK_TOKENS).hashes


async def test_an_engine_that_does_not_answer_in_time_is_not_waited_for() -> None:
    """The Pick has its own time."""
    async with tokenizing_engine(trained()) as engine, prompt_rig(timeout_ns=20_000_000) as rig:
        released = asyncio.Event()
        engine.answering = wait_for(engine, released)
        found = await rig.blocks(chat(("user", "a")), engines(engine.address, url=URL))
        released.set()

        assert isinstance(found, NoBlocks)
        assert found.why in {"tokenizer_timeout", "tokenizer_failed"}
        assert not found.is_by_design


def wait_for(engine: TokenizingEngine, released: asyncio.Event) -> object:
    """Return what answers only after *released*."""

    async def answering(_: web.Request) -> web.StreamResponse:
        await released.wait()
        return web.json_response({"tokens": engine.token_ids(engine.questions[0])})

    return answering


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/tokenize", "http://{address}/gone"])
async def test_nobody_there_is_a_failure(url: str) -> None:
    """Refused, or another page."""
    async with tokenizing_engine(trained()) as engine, prompt_rig() as rig:
        members = engines(engine.address, url=url)

        assert await rig.why(chat(("user", "a")), members) == ("tokenizer_failed", False)


async def test_token_ids_are_asked_of_nobody() -> None:
    """They are the engine's already."""
    async with tokenizing_engine(trained()) as engine, prompt_rig() as rig:
        await rig.exact({"model": "m", "prompt": [1, 2, 3, 4]}, engines(engine.address, url=URL))

        assert engine.questions == []
