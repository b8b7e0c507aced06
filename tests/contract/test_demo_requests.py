"""Requests to a demo that runs: with curl and the OpenAI client, with failures and what mends."""

import asyncio
import shutil

import openai
import pytest
from demo_process import Demo, running_demo

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not there")


async def sent_until(demo: Demo, name: str, status: int) -> None:
    """Send a request again and again until it is answered with *status*."""
    async with asyncio.timeout(60):
        while (await demo.chat(name))[0] != status:
            pass


async def test_prompts_that_begin_alike_go_where_they_are_warm() -> None:
    """The second one is not computed again, and the demo says why it went there."""
    async with running_demo() as demo:
        status, first = await demo.chat("first.json")
        await demo.until_held(first["usage"]["prompt_tokens"] // 16)
        _, second = await demo.chat("second.json")
        why = await demo.until(lambda line: "matched=2608/2656" in line)
        ended = await demo.end()

    engine = first["choices"][0]["message"]["content"].split()[0]
    assert status == 200
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert second["choices"][0]["message"]["content"].startswith(f"{engine} computed ")
    assert second["usage"]["prompt_tokens"] == 2656
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] == 2608
    assert why.startswith(f"request for demo-model -> {engine}  OK  tier=local;")
    assert "prefix=precise" in why
    assert ended == 0
    assert demo.lines[-1].startswith("index and engines agree about all ")


async def test_the_openai_client_works() -> None:
    """Whole answers, streams with usage, plain completions, and errors it knows."""
    async with (
        running_demo() as demo,
        openai.AsyncOpenAI(base_url=demo.gateway, api_key="any", max_retries=0) as client,
    ):
        whole = await client.chat.completions.create(
            model="demo-model", messages=[{"role": "user", "content": "x" * 200}]
        )
        stream = await client.chat.completions.create(
            model="demo-model",
            messages=[{"role": "user", "content": "x" * 200}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        completion = await client.completions.create(
            model="demo-model", prompt="y" * 100, max_tokens=6
        )
        hosted = await client.chat.completions.create(
            model="hosted-model", messages=[{"role": "user", "content": "hello"}]
        )
        with pytest.raises(openai.APIStatusError) as unknown:
            await client.completions.create(model="nobody-has-it", prompt="z")

    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert whole.choices[0].finish_reason == "stop"
    assert whole.usage is not None
    assert text.startswith("engine-")
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens
    assert completion.choices[0].text == "engine"
    assert (hosted.choices[0].message.content or "").startswith("the provider computed ")
    assert unknown.value.status_code in (404, 503)


async def test_a_wrong_key_is_found_out_and_forgotten_once_it_is_right() -> None:
    """After two refusals nobody is sent there; the right key is enough to be picked again."""
    async with running_demo("--suppress-for", "500ms") as demo:
        key = demo.directory / "secrets" / "provider.key"
        right = key.read_text()
        assert (await demo.chat("hosted.json"))[0] == 200
        key.write_text("wrong\n")
        await sent_until(demo, "hosted.json", 503)
        await demo.until(lambda line: "provider:default/hosted has failed" in line)
        key.write_text(right)
        await sent_until(demo, "hosted.json", 200)
        await demo.until(lambda line: "provider:default/hosted works again" in line)

        assert await demo.end() == 0


async def test_a_killed_engine_is_left_alone_until_it_is_back() -> None:
    """No request fails meanwhile; once it is back, a request tries it, and it is as before."""
    async with running_demo("--suppress-for", "500ms", "--down-for", "10m") as demo:
        _, first = await demo.chat("first.json")
        engine = first["choices"][0]["message"]["content"].split()[0]
        said = [await demo.post(engine, deed) for deed in ("start", "kill", "kill")]
        statuses = {(await demo.chat("first.json"))[0]}
        await demo.until(lambda line: "avoided=1" in line)
        async with asyncio.timeout(60):
            while not any(f"{engine} has failed again and again" in line for line in demo.lines):
                statuses.add((await demo.complete(f"{len(demo.lines)} others"))[0])
        await demo.post(engine, "start")
        await demo.until(lambda line: f"{engine} is up again" in line)
        async with asyncio.timeout(60):
            while not any(f"{engine} works again" in line for line in demo.lines):
                statuses.add((await demo.complete(f"{len(demo.lines)} times"))[0])
        ended = await demo.end()

    assert said == [
        f"{engine} is up already",
        f"{engine} is down; it is back in 600 s",
        f"{engine} is down already",
    ]
    assert statuses == {200}
    assert ended == 0


async def test_a_killed_engine_comes_back_by_itself() -> None:
    """After a while, without anybody asking for it."""
    async with running_demo("--down-for", "100ms") as demo:
        await demo.post("engine-0", "kill")
        await demo.until(lambda line: line.startswith("engine-0 is up again"))

        assert await demo.end() == 0


async def test_without_engines_the_provider_takes_over() -> None:
    """It serves their model under another name."""
    async with running_demo("--down-for", "60s") as demo:
        for number in range(3):
            await demo.post(f"engine-{number}", "kill")
        status, answer = await demo.chat("first.json")
        line = await demo.until(lambda line: "-> provider:default/hosted" in line)
        ended = await demo.end()

    assert status == 200
    assert answer["choices"][0]["message"]["content"].startswith("the provider computed ")
    assert "tier=paid" in line
    assert "target=hosted-model" in line
    assert ended == 0
