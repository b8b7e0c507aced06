"""A fake engine behind real sockets, read with the producer's own core."""

import asyncio
import signal
import sys
from pathlib import Path

import aiohttp
import pytest
import zmq
import zmq.asyncio
from fake_engines import Listener, engine_settings, fake_engine, replay_of

from inferencecache.errors import ConfigError
from inferencecache.events import EventMapper, decode_batch
from inferencecache.settings.producer import DecodeSettings, MapperSettings
from inferencecache.simulation import LAYOUTS, parse_script
from inferencecache.transport.listen import ListenError

LIFE = """
- {do: serve, start: 1000, count: 64}
- {do: serve, start: 1000, count: 32, then: [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]}
- {do: copy, start: 1000, count: 32}
- {do: remove, start: 1000, count: 64, first_block: 1}
- {do: evict, blocks: 1}
- {do: serve, start: 5000, count: 160}
"""


@pytest.mark.parametrize("form", ["auto", "unsigned", "bytes8", "bytes16", "bytes32"])
@pytest.mark.parametrize("layout", LAYOUTS)
async def test_stream_leads_to_the_expected_keys(layout: str, form: str) -> None:
    """In every layout, what a producer makes of the stream is what EXPECT lines say."""
    mapper = EventMapper(MapperSettings())
    async with fake_engine(layout=layout, hash_form=form) as engine, Listener(engine) as listener:
        for step in parse_script(LIFE, "life"):
            await engine.play(step)
        for _ in range(engine.player.streams[0].next_number):
            _, payload = await listener.receive()
            batch = decode_batch(payload, DecodeSettings())
            assert batch.faults == {}
            mapper.apply(batch, 0)

    expected = {(key.adapter_id, key.key): key.tier for key in engine.expected()}
    assert mapper.held_keys() == expected
    assert expected


@pytest.mark.parametrize("layout", ["vllm-0.25.1", "vllm-0.26", "sglang-0.5.21", "sglang-0.5.22"])
async def test_replay_gives_what_was_kept(layout: str) -> None:
    """Both shapes of a replay hold the kept messages and end with the mark."""
    script = "[{do: serve, count: 16}, {do: skip}, {do: clear, lost: true}, {do: clear}]"
    async with fake_engine(layout=layout, buffer_steps=2) as engine:
        for step in parse_script(script, "script"):
            await engine.play(step)

        assert await replay_of(engine, 0) == [2, 3, 2**64 - 1]
        assert await replay_of(engine, 3) == [3, 2**64 - 1]


async def test_request_of_another_shape_gets_no_answer() -> None:
    """Like engines, it ignores a request without the empty frame and answers the next."""
    async with fake_engine() as engine:
        with zmq.asyncio.Context() as context, context.socket(zmq.DEALER) as dealer:
            dealer.connect(engine.replay_endpoints[0])
            await dealer.send_multipart([bytes(8)])
            await dealer.send_multipart([b"", bytes(8)])

            assert await dealer.recv_multipart() == [b"", b"", b"\xff" * 8, b""]


async def test_ranks_have_neighbouring_ports() -> None:
    """Rank r publishes r ports above rank 0, with numbers of its own."""
    async with fake_engine(ranks=3) as engine:
        ports = [int(endpoint.rpartition(":")[2]) for endpoint in engine.endpoints]
        assert ports == [ports[0], ports[0] + 1, ports[0] + 2]
        async with Listener(engine, rank=2) as listener:
            (step,) = parse_script("[{do: serve, count: 16, rank: 2}]", "script", ranks=3)
            await engine.play(step)
            number, payload = await listener.receive()

    assert number == 0
    assert decode_batch(payload, DecodeSettings()).rank == 2


async def test_page_counts_what_was_served() -> None:
    """The metrics page follows the engine's own counters."""
    async with fake_engine() as engine, aiohttp.ClientSession() as session:
        for step in parse_script("[{do: serve, count: 32}, {do: serve, count: 32}]", "script"):
            await engine.play(step)
        async with session.get(engine.metrics_url) as answer:
            page = await answer.text()

    assert 'vllm:prefix_cache_queries_total{model_name="fake-model"} 64.0' in page
    assert 'vllm:prefix_cache_hits_total{model_name="fake-model"} 32.0' in page


async def test_publisher_that_connects_is_not_heard() -> None:
    """With a host it does not take for a wildcard, an engine listens nowhere."""
    config = '{"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "tcp://0.0.0.0:1"}'
    async with fake_engine(kv_events_config=config) as engine:
        (step,) = parse_script("[{do: serve, count: 32}]", "script")
        await engine.play(step)

        assert not engine.plan.is_binding
        assert engine.expected() == []


async def test_taken_endpoint() -> None:
    """A second engine at the same endpoint says so and leaves nothing open."""
    async with fake_engine() as engine:
        with pytest.raises(ListenError, match="fake-engine"):
            async with fake_engine(bind_endpoint=engine.endpoints[0]):
                pass


def test_groups_need_a_layout_that_tells_them() -> None:
    """An old release cannot say which group an event belongs to."""
    from inferencecache.app.fake_engine import FakeEngine  # noqa: PLC0415 - one test needs it

    with pytest.raises(ConfigError, match="--groups"):
        FakeEngine(engine_settings(layout="vllm-0.17", groups=2))


async def run_command(*arguments: str) -> asyncio.subprocess.Process:
    """Start the command on free ports."""
    ports = ("--bind", "tcp://127.0.0.1:0", "--replay-bind", "tcp://127.0.0.1:0")
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "inferencecache", "fake-engine", *ports, "--metrics-listen", "127.0.0.1:0"),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_command_answers_requests_until_a_signal() -> None:
    """No prompts are made up; the keys printed in the end are those of the requests."""
    process = await run_command("--openai-listen", "127.0.0.1:0", "--base-latency", "0ms")
    assert process.stdout is not None
    greeting = [(await process.stdout.readline()).decode().split() for _ in range(4)]
    url = greeting[-1][1].removeprefix("url=")
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{url}/completions", json={"prompt": "x" * 40, "max_tokens": 1}) as answer,
    ):
        status = answer.status
    process.send_signal(signal.SIGTERM)
    stdout, stderr = await process.communicate()

    assert [words[0] for words in greeting] == ["EVENTS", "REPLAY", "METRICS", "OPENAI"]
    assert status == 200
    assert [line.split()[2] for line in stdout.decode().splitlines()] == [
        "token_count=16",
        "token_count=32",
    ]
    assert process.returncode == 0
    assert stderr == b""


async def test_command_prints_what_must_result(tmp_path: Path) -> None:
    """A script's keys are printed, and the engine stays for replays until a signal."""
    script = tmp_path / "script.yaml"
    script.write_text("- {do: serve, start: 1, count: 33}\n")
    process = await run_command("--script", str(script))
    assert process.stdout is not None
    lines = [(await process.stdout.readline()).decode() for _ in range(5)]
    process.send_signal(signal.SIGTERM)

    assert await process.wait() == 0
    assert (await process.communicate())[1] == b""
    assert [line.split()[0] for line in lines] == ["EVENTS", "REPLAY", "METRICS", *["EXPECT"] * 2]
    assert lines[3] == "EXPECT prefix_hash[0]=ea06fc71a5ee6e88 token_count=16 tier=T1\n"


@pytest.mark.parametrize("size", [1, 16, 64])
async def test_generated_prompts_fill_blocks_of_the_index(size: int) -> None:
    """However small the engine's blocks, a prompt is its shared eight blocks and one to four."""
    arguments = ("--block-size", str(size), "--prompts", "1", "--layout", "sglang-0.5.6")
    process = await run_command(*arguments, "--interval", "0s", "--stay", "false")
    output, _ = await process.communicate()

    expected = [line for line in output.decode().splitlines() if line.startswith("EXPECT")]
    per_block = max(size, 16) // 16
    assert process.returncode == 0
    assert len(expected) in [per_block * blocks for blocks in (9, 10, 11, 12)]
    assert f"token_count={max(size, 16) * 8} tier=T1" in output.decode()


async def test_command_serves_a_trace(tmp_path: Path) -> None:
    """Requests of a trace become prompts; a block of the trace is many blocks of the engine."""
    trace = tmp_path / "trace.jsonl"
    trace.write_text(
        '{"timestamp": 0, "input_length": 520, "output_length": 1, "hash_ids": [1, 2]}\n'
    )
    process = await run_command("--trace", str(trace), "--interval", "0s", "--stay", "false")
    stdout, _ = await process.communicate()

    assert process.returncode == 0
    assert stdout.decode().count("EXPECT prefix_hash[") == 32


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--layout", "trt-1"), 2, "--layout"),
        (("--script", "/nowhere.yaml"), 2, "readable"),
        (("--script", "/a", "--trace", "/b"), 2, "not both"),
        (("--bind", "tcp://256.0.0.1:1"), 1, "cannot listen"),
    ],
)
async def test_command_that_cannot_run(arguments: tuple[str, ...], code: int, words: str) -> None:
    """One line says why."""
    process = await run_command(*arguments)
    _, stderr = await process.communicate()

    assert process.returncode == code
    assert stderr.decode().count("\n") == 1
    assert words in stderr.decode()
