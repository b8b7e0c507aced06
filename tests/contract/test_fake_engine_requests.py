"""A fake engine answers requests as engines do, and its cache and events follow."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest
from fake_engines import Listener, engine_settings
from served_picker import until

from inferencecache.app.fake_engine import FakeEngine, running_fake_engine
from inferencecache.clock import NS_PER_S
from inferencecache.errors import ConfigError

PROMPT = "You are a patient assistant who explains caches. " * 8
CHAT = {
    "model": "fake-model",
    "messages": [{"role": "system", "content": PROMPT}, {"role": "user", "content": "Hello?"}],
}
CHAT_TOKENS = len(
    f"S system\n{PROMPT}E\nS user\nHello?E\nS assistant\n".replace("S ", "S").encode()
)
FAST = {"prefill_tokens_per_s": 10_000_000, "base_ns": 0, "decode_token_ns": 0}
SLOW = {"prefill_tokens_per_s": 1, "base_ns": 0, "decode_token_ns": 0}


class Engine:
    """An engine and a client of it."""

    def __init__(self, engine: FakeEngine, http: aiohttp.ClientSession) -> None:
        assert engine.requests is not None
        self.engine = engine
        self.address = engine.requests.address
        self._http = http

    async def post(self, path: str, body: object) -> tuple[int, Any]:
        """Return status and document of an answer."""
        payload = body if isinstance(body, bytes) else msgspec.json.encode(body)
        async with self._http.post(f"http://{self.address}{path}", data=payload) as answer:
            return answer.status, msgspec.json.decode(await answer.read())

    async def events(self, path: str, body: dict[str, object]) -> list[Any]:
        """Return the events of a streamed answer; the last one is text."""
        url = f"http://{self.address}{path}"
        async with self._http.post(url, json={**body, "stream": True}) as answer:
            assert answer.content_type == "text/event-stream"
            lines = (await answer.read()).decode().split("\n\n")
        *documents, done, end = lines
        assert end == ""
        return [*(msgspec.json.decode(line.removeprefix("data: ")) for line in documents), done]

    async def get(self, path: str) -> str:
        """Return a page."""
        async with self._http.get(f"http://{self.address}{path}") as answer:
            assert answer.status == 200
            return await answer.text()

    async def until_load(self, running: int, waiting: int) -> None:
        """Wait until the engine has so many requests."""
        gauges = self.engine.gauges
        await until(lambda: (gauges().running, gauges().waiting) == (running, waiting))


@asynccontextmanager
async def engine(**settings: object) -> AsyncIterator[Engine]:
    """Run an engine that answers requests at once."""
    chosen = engine_settings(**{"openai_address": "127.0.0.1:0", **FAST, **settings})
    async with running_fake_engine(chosen) as running, aiohttp.ClientSession() as http:
        yield Engine(running, http)


async def test_chat_says_what_was_cached() -> None:
    """The second time all whole blocks before the last token are there."""
    async with engine() as one:
        first_status, first = await one.post("/v1/chat/completions", CHAT)
        _, second = await one.post("/v1/chat/completions", CHAT)

    cached = (CHAT_TOKENS - 1) // 16 * 16
    assert first_status == 200
    assert first["object"] == "chat.completion"
    assert first["choices"][0]["finish_reason"] == "stop"
    assert first["choices"][0]["message"] == {
        "role": "assistant",
        "content": f"fake-engine computed {CHAT_TOKENS} of {CHAT_TOKENS} prompt tokens; "
        "0 were cached.",
    }
    assert first["usage"]["prompt_tokens"] == CHAT_TOKENS
    assert first["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    assert second["usage"]["prompt_tokens_details"] == {"cached_tokens": cached}
    assert second["id"] != first["id"]


async def test_answers_at_a_time_have_ids_of_their_own() -> None:
    """Whether each is one document or a stream: clients tell answers by them."""
    async with engine() as one:
        answers = await asyncio.gather(
            *(one.post("/v1/chat/completions", CHAT) for _ in range(4)),
            *(one.events("/v1/chat/completions", CHAT) for _ in range(2)),
        )

    ids = [answer[1]["id"] for answer in answers]
    assert sorted(ids) == [f"chatcmpl-fake-engine-{number}" for number in range(1, 7)]


async def test_stream_is_the_same_answer_in_pieces() -> None:
    """The role comes first, the reason of the end last, and the usage only if it is asked for."""
    async with engine() as one:
        _, whole = await one.post("/v1/chat/completions", CHAT)
        asked = {**CHAT, "cache_salt": "other", "stream_options": {"include_usage": True}}
        *pieces, end, usage, done = await one.events("/v1/chat/completions", asked)
        without = await one.events("/v1/chat/completions", CHAT)

    text = "".join(piece["choices"][0]["delta"]["content"] for piece in pieces)
    assert len(pieces) > 5
    assert pieces[0]["choices"][0]["delta"]["role"] == "assistant"
    assert text == whole["choices"][0]["message"]["content"]
    assert end["choices"][0]["finish_reason"] == "stop"
    assert usage["choices"] == []
    assert usage["usage"] == whole["usage"]
    assert done == "data: [DONE]"
    assert not any("usage" in event for event in without[:-1])


@pytest.mark.parametrize("prompt", [PROMPT, list(PROMPT.encode())])
async def test_completions_take_text_and_tokens(prompt: str | list[int]) -> None:
    """A token is a byte, so both are the same prompt."""
    async with engine() as one:
        await one.post("/v1/completions", {"prompt": PROMPT})
        _, answer = await one.post(
            "/v1/completions", {"model": "fake-model", "prompt": prompt, "max_tokens": 8}
        )

    assert answer["object"] == "text_completion"
    assert answer["choices"][0]["text"] == "fake-eng"
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 8
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 384


async def test_small_pages() -> None:
    """Models, tokens, health and metrics."""
    async with engine() as one:
        models = msgspec.json.decode(await one.get("/v1/models"))
        _, text = await one.post("/tokenize", {"model": "fake-model", "prompt": "hé"})
        _, chat = await one.post("/tokenize", CHAT)
        health = await one.get("/health")
        metrics = await one.get("/metrics")

    assert [row["id"] for row in models["data"]] == ["fake-model"]
    assert text["tokens"] == [0x68, 0xC3, 0xA9]
    assert chat["count"] == CHAT_TOKENS
    assert chat["tokens"][0] == 256
    assert health == ""
    assert 'vllm:num_requests_waiting{model_name="fake-model"} 0.0' in metrics


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/v1/chat/completions", {**CHAT, "model": "other"}, 404, "`other` does not exist"),
        ("/v1/chat/completions", b"{", 400, "body"),
        ("/v1/chat/completions", {"model": "fake-model", "messages": []}, 400, "messages"),
        ("/v1/chat/completions", {**CHAT, "max_tokens": 0}, 400, "max_tokens"),
        ("/v1/completions", {"prompt": ""}, 400, "at least one token"),
        ("/v1/completions", {"prompt": [2**32]}, 400, "prompt"),
        ("/v1/completions", {"prompt": "x" * 500}, 400, "less than 500"),
        ("/tokenize", {}, 400, "a text, or messages"),
        ("/v1/embeddings", {}, 404, "no such path"),
    ],
)
async def test_what_is_wrong_is_said(path: str, body: object, status: int, words: str) -> None:
    """In the form in which clients of OpenAI show it."""
    async with engine(window_tokens=500) as one:
        answered, document = await one.post(path, body)

    assert answered == status
    assert words in document["error"]["message"]
    assert document["error"]["code"] == status


async def test_requests_are_announced() -> None:
    """What a request stores is published, and is what an index must hold."""
    async with engine() as one, Listener(one.engine) as listener:
        await one.post("/v1/completions", {"prompt": "x" * 40})
        number, _ = await listener.receive()
        expected = one.engine.expected()

    assert number == 0
    assert [key.token_count for key in expected] == [16, 32]


async def test_one_prompt_is_computed_at_a_time() -> None:
    """The load is on the metrics page, and what nobody waits for any more is dropped."""
    async with engine(**SLOW) as one:
        asking = [
            asyncio.create_task(one.post("/v1/completions", {"prompt": "x" * 1_000}))
            for _ in range(3)
        ]
        await one.until_load(running=1, waiting=2)
        metrics = await one.get("/metrics")
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await one.until_load(running=0, waiting=0)

    assert 'vllm:num_requests_waiting{model_name="fake-model"} 2.0' in metrics
    assert 'vllm:num_requests_running{model_name="fake-model"} 1.0' in metrics


async def test_cut_streams_are_dropped() -> None:
    """A client that goes away in the middle of an answer frees its place."""
    async with engine(decode_token_ns=NS_PER_S) as one, aiohttp.ClientSession() as http:
        url = f"http://{one.address}/v1/completions"
        async with http.post(url, json={"prompt": "x", "stream": True}) as answer:
            await answer.content.readany()
            await one.until_load(running=1, waiting=0)
        await one.until_load(running=0, waiting=0)


async def test_a_crash_loses_everything_and_passes() -> None:
    """Requests end without an answer; the engine is back where it was, with nothing cached."""
    async with engine(**SLOW) as one:
        asking = asyncio.create_task(one.post("/v1/completions", {"prompt": "x" * 1_000}))
        await one.until_load(running=1, waiting=0)
        await one.engine.crash()
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await asking
        with pytest.raises(aiohttp.ClientConnectorError):
            await one.get("/health")
        await one.engine.revive()

        assert await one.get("/health") == ""
        assert one.engine.gauges().running == 0
        assert one.engine.expected() == []


async def test_a_new_life_is_announced_from_number_zero() -> None:
    """Whoever subscribed before the crash hears the next life without doing anything."""
    async with engine() as one, Listener(one.engine) as listener:
        await one.post("/v1/completions", {"prompt": "x" * 40})
        await one.post("/v1/completions", {"prompt": "y" * 40})
        await listener.receive()
        await listener.receive()
        await one.engine.crash()
        await one.engine.revive()
        listening = asyncio.create_task(listener.receive())
        await one.engine.wait_subscribed()
        _, answer = await one.post("/v1/completions", {"prompt": "x" * 40})
        number, _ = await listening

    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert number == 0


def test_an_address_has_a_form() -> None:
    """A wrong one is told before anything is opened."""
    with pytest.raises(ConfigError, match="--openai-listen: 'nonsense' is not allowed"):
        FakeEngine(engine_settings(openai_address="nonsense"))
