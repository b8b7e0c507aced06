"""The official client works against the gateway as against any other server."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import openai
import pytest
from aiohttp import web
from served_gateway import ServedGateway, serve_gateway, serve_upstream, worker

USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 2,
    "total_tokens": 9,
    "prompt_tokens_details": {"cached_tokens": 4},
}
HEAD = {"id": "chatcmpl-1", "created": 1, "model": "real-name"}


async def engine(request: web.BaseRequest) -> web.StreamResponse:
    """Answer a chat request with two words."""
    asked = json.loads(SEEN[-1])
    if not asked.get("stream"):
        message = {"role": "assistant", "content": "hello world"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response(
            {**HEAD, "object": "chat.completion", "choices": [choice], "usage": USAGE}
        )
    out = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await out.prepare(request)
    chunk = {**HEAD, "object": "chat.completion.chunk"}
    for text in ("hello", " world"):
        choices = [{"index": 0, "delta": {"content": text}, "finish_reason": None}]
        await out.write(b"data: " + json.dumps({**chunk, "choices": choices}).encode() + b"\n\n")
    last = {**chunk, "choices": [], "usage": USAGE}
    await out.write(b"data: " + json.dumps(last).encode() + b"\n\ndata: [DONE]\n\n")
    await out.write_eof()
    return out


SEEN: list[bytes] = []


@asynccontextmanager
async def serve(directory: Path) -> AsyncIterator[tuple[ServedGateway, openai.AsyncOpenAI]]:
    """Serve a gateway and the client of it."""
    async with serve_upstream() as upstream:

        async def handler(request: web.BaseRequest) -> web.StreamResponse:
            SEEN.append(upstream.requests[-1][2])
            return await engine(request)

        upstream.handler = handler
        async with (
            serve_gateway(directory, worker(upstream.address)) as served,
            openai.AsyncOpenAI(
                base_url=served.gateway.url + "/v1", api_key="k", max_retries=0
            ) as client,
        ):
            yield served, client


async def test_a_whole_answer(tmp_path: Path) -> None:
    """With its usage."""
    async with serve(tmp_path) as (served, client):
        answer = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}]
        )
        assert answer.choices[0].message.content == "hello world"
        assert answer.usage is not None
        assert answer.usage.prompt_tokens_details is not None
        assert answer.usage.prompt_tokens_details.cached_tokens == 4
        assert json.loads(SEEN[-1])["model"] == "real-name"
        await served.settled()


async def test_a_stream(tmp_path: Path) -> None:
    """Word by word, with its usage at the end."""
    async with serve(tmp_path) as (served, client):
        stream = await client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
        assert texts == ["hello", " world"]
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.total_tokens == 9
        await served.settled()


async def test_a_stream_that_is_closed_early(tmp_path: Path) -> None:
    """Nothing stays in flight."""
    async with serve(tmp_path) as (served, client):
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        async for _ in stream:
            break
        await stream.close()
        await served.settled()


async def test_errors_are_those_that_the_client_knows(tmp_path: Path) -> None:
    """By their status and code."""
    async with serve(tmp_path) as (served, client):
        with pytest.raises(openai.NotFoundError) as caught:
            await client.chat.completions.create(model="nobody", messages=[])
        assert caught.value.code == "model_not_found"
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(model="", messages=[])
        await served.settled()
