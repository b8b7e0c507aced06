"""The doctor against real sockets: what each fault looks like."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import zmq
import zmq.asyncio
from examined_engine import ENOUGH, QUICK, by_code, diagnosis_of, examine, play
from fake_engines import fake_engine
from own_ports import own_port, own_target

from inferencecache.app.doctor_findings import CODES, Diagnosis
from inferencecache.app.fake_engine import FakeEngine
from inferencecache.clock import NS_PER_S
from inferencecache.errors import ConfigError
from inferencecache.simulation import LAYOUTS

FORMS = {
    "vllm-0.9.0": "arrays of 6: vLLM 0.9.0",
    "vllm-0.9.1": "arrays of 6: vLLM 0.9.0 to 0.10.1",
    "vllm-0.10.2": "arrays of 7: vLLM 0.10.2",
    "vllm-0.14": "arrays of 8: vLLM 0.14",
    "vllm-0.17": "arrays of 9: vLLM 0.17",
    "vllm-0.20": "arrays of 10: vLLM 0.20",
    "vllm-0.22": "arrays of 12: vLLM 0.22",
    "vllm-0.24": "maps: vLLM 0.24",
    "vllm-0.26": "maps: vLLM 0.26",
    "vllm-0.29": "maps: vLLM 0.26 or later",
    "vllm-0.30": "maps: vLLM 0.26 or later",
    "vllm-0.33": "maps with a wide header: vLLM 0.33",
    "sglang-0.4.7": "SGLang 0.4.6 to 0.5.8",
    "sglang-0.5.9": "SGLang 0.5.9 to 0.5.19",
    "sglang-0.5.13": "SGLang 0.5.9 to 0.5.19",
    "sglang-0.5.20": "SGLang 0.5.20 or later",
    "sglang-0.5.22": "SGLang 0.5.22 or later",
}
SERVED = "[{do: serve, count: 64}, {do: serve, start: 500, count: 64}]"


async def examine_while(engine: FakeEngine, script: str, **settings: object) -> Diagnosis:
    """Play *script* as soon as the doctor listens."""
    examination = asyncio.create_task(
        diagnosis_of(engine, **{"listen_ns": 20 * NS_PER_S, **settings})
    )
    await engine.wait_rank_subscribed(0)
    await play(engine, script)
    return await examination


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_healthy_engine(layout: str) -> None:
    """With traffic in any layout there is nothing above INFO but the price of an old release."""
    scheme = "sglang" if layout.startswith("sglang") else "vllm"
    async with fake_engine(layout=layout) as engine:
        diagnosis = await examine_while(engine, SERVED, hash_scheme=scheme)

    codes = by_code(diagnosis)
    assert {"EC008", "ER001", "ET001", "EL001", "EB001", "EY001", "EM001"} <= set(codes)
    assert set(codes) - {"EL004"} == {
        *("EC008", "ER001", "ET001", "EL001", "EB001", "EY001", "EM001")
    }
    assert FORMS[layout] in codes["EL001"]
    assert ("EL004" in codes) == (
        layout in {"vllm-0.9.0", "vllm-0.9.1", "vllm-0.10.2", "vllm-0.14"}
    )
    assert diagnosis.exit_code == int("EL004" in codes)


@asynccontextmanager
async def talker(greeting: bytes, *, closes: bool) -> AsyncIterator[str]:
    """Run a TCP server that is no ZMQ socket."""
    writers: list[asyncio.StreamWriter] = []

    async def talk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(greeting)
        if closes:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        for writer in writers:
            writer.transport.abort()
        server.close()
        await server.wait_closed()


async def test_nobody_listens() -> None:
    """A refused connection names the usual causes."""
    codes = await examine(engine_endpoint=f"tcp://{own_target()}")
    assert "listens only at an endpoint" in codes["EC003"]
    assert "ET001" not in codes


async def test_publisher_that_connects() -> None:
    """With 0.0.0.0 the publisher of vLLM looks for somebody instead of listening."""
    port = str(own_port())
    config = (
        '{"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "tcp://0.0.0.0:PORT"}'
    ).replace("PORT", port)
    async with fake_engine(kv_events_config=config):
        codes = await examine(engine_endpoint=f"tcp://127.0.0.1:{port}")

    assert "the publisher connects" in codes["EC003"]


@pytest.mark.parametrize(
    "endpoint",
    ["tcp://*:5557", "127.0.0.1:5557", "tcp://127.0.0.1", "tcp://127.0.0.1:0", "ipc:///x"],
)
async def test_endpoint_that_only_an_engine_can_use(endpoint: str) -> None:
    """What is bound is no address to connect to."""
    assert "EC001" in await examine(engine_endpoint=endpoint)


async def test_host_without_address() -> None:
    """A name that does not resolve is said to be one."""
    assert "EC002" in await examine(engine_endpoint="tcp://nowhere.invalid:5557")


@pytest.mark.parametrize(
    ("greeting", "closes", "code", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", False, "EC005", "another protocol"),
        (b"", True, "EC005", "closes"),
        (b"", False, "EC005", "says nothing"),
        (
            b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"CURVE".ljust(20, b"\0") + bytes(32),
            False,
            "EC007",
            "CURVE",
        ),
    ],
)
async def test_other_services(greeting: bytes, code: str, words: str, *, closes: bool) -> None:
    """A port of something else is told from an engine's."""
    is_silent = not greeting and not closes
    wait = {"timeout_ns": QUICK} if is_silent else {}
    async with talker(greeting, closes=closes) as endpoint:
        codes = await examine(engine_endpoint=endpoint, **wait)

    assert words in codes[code]


async def test_endpoints_the_wrong_way_round() -> None:
    """Events and replay are told apart by the kind of socket."""
    async with fake_engine() as engine:
        codes = await examine(
            engine,
            engine_endpoint=engine.replay_endpoints[0],
            replay_endpoint=engine.endpoints[0],
        )

    assert "replay endpoint" in codes["EC006"]
    assert "where events are published" in codes["EY007"]


async def test_another_topic() -> None:
    """Events under another topic are heard, and the topic is named."""
    async with fake_engine(topic="kv@pod@model") as engine:
        examination = asyncio.create_task(examine(engine, listen_ns=ENOUGH))
        await engine.wait_rank_subscribed(0)
        await play(engine, SERVED)

        assert "'kv@pod@model'" in (await examination)["ET002"]


async def test_publisher_of_something_else() -> None:
    """Messages of another shape come from no engine."""
    context = zmq.asyncio.Context()
    publisher = context.socket(zmq.XPUB)
    try:
        publisher.bind("tcp://127.0.0.1:0")
        endpoint = publisher.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()
        examination = asyncio.create_task(
            examine(engine_endpoint=endpoint, topic="", listen_ns=ENOUGH)
        )
        await publisher.recv()
        await publisher.send(b"load")

        assert "EL002" in await examination
    finally:
        context.destroy(linger=0)


async def test_silent_though_requests_are_served() -> None:
    """An engine that works and says nothing is at fault; so is the hash it cannot encode."""
    async with fake_engine() as engine:
        examination = asyncio.create_task(examine(engine, listen_ns=ENOUGH))
        await engine.wait_rank_subscribed(0)
        await play(engine, "[{do: serve, count: 64, lost: true}]")

        assert "64 prompt tokens were served" in (await examination)["ET003"]


async def test_idle_and_unknown() -> None:
    """Silence alone is no fault; without a metrics page nobody can tell."""
    async with fake_engine() as engine:
        assert "ET005" in await examine(engine)
        assert "ET004" in await examine(engine, metrics_url="")


@pytest.mark.parametrize(
    ("size", "code", "words"),
    [(64, "EB003", "becomes 4"), (4, "EB003", "4 blocks make one"), (24, "EB002", "neither")],
)
async def test_block_sizes(size: int, code: str, words: str) -> None:
    """The engine's blocks are compared with those of the index."""
    async with fake_engine(block_size_tokens=size) as engine:
        await play(engine, "[{do: serve, count: 192}]")

        assert words in (await examine(engine))[code]


async def test_ranks() -> None:
    """Each rank has a port; too few and too many are both found."""
    async with fake_engine(ranks=3, replay_endpoint="") as engine:
        assert "ER001" in await examine(engine, ranks=3)
        assert "ER003" in await examine(engine, ranks=2)
        (finding,) = [
            finding
            for finding in (await diagnosis_of(engine, ranks=4)).findings
            if finding.code == "ER002"
        ]
        assert finding.resource.endswith(str(int(engine.endpoints[0].rpartition(":")[2]) + 3))


async def test_port_of_another_rank() -> None:
    """Events that name another rank come from another port than was meant."""
    async with fake_engine(ranks=2) as engine:
        await play(engine, "[{do: serve, count: 64, rank: 1}]", ranks=2)
        codes = await examine(
            engine,
            engine_endpoint=engine.endpoints[1],
            replay_endpoint=engine.replay_endpoints[1],
        )

    assert "rank 1" in codes["ER004"]


async def test_replay_reaches_not_far_enough() -> None:
    """A short ring has lost its head."""
    async with fake_engine(buffer_steps=1) as engine:
        await play(engine, SERVED)

        assert "back to number 1" in (await examine(engine))["EY002"]


async def test_replay_with_holes() -> None:
    """Numbers that no replay has are counted."""
    async with fake_engine() as engine:
        await play(engine, "[{do: serve, count: 64}, {do: skip, count: 2}, {do: clear}]")

        assert "2 numbers" in (await examine(engine))["EY005"]


async def test_replay_without_end() -> None:
    """Silence ends a replay that does not say when it is over."""
    async with fake_engine(has_end_mark=False) as engine:
        await play(engine, SERVED)
        codes = await examine(engine, timeout_ns=ENOUGH)

        assert "EY004" in codes
        assert "EY001" not in codes


async def test_replay_that_is_not_there() -> None:
    """A closed port, a port of something else, and none at all are different findings."""
    async with fake_engine() as engine, talker(b"", closes=True) as other:
        assert "no ZMQ socket" in (await examine(engine, replay_endpoint=other))["EY003"]
        assert "EY006" in await examine(engine, replay_endpoint="")


async def test_replay_of_an_engine_that_said_nothing() -> None:
    """An empty ring is no fault."""
    async with fake_engine() as engine:
        assert "nothing yet" in (await examine(engine))["EY001"]


async def test_metrics_pages() -> None:
    """The page has to be there and to speak the profile's names."""
    async with fake_engine(layout="sglang-0.5.22") as engine:
        assert "sglang" in (await examine(engine))["EM003"]
        assert "EM001" in await examine(engine, hash_scheme="sglang")
        base = engine.metrics_url.removesuffix("/metrics")
        assert "404" in (await examine(engine, metrics_url=base + "/nothing"))["EM002"]
        assert "EM003" in await examine(engine, metrics_url=base + "/healthz")
        assert "EM002" in await examine(engine, metrics_url="http://127.0.0.1:1/metrics")
        assert "EM005" in await examine(engine, metrics_url="")


async def test_an_engine_must_be_named() -> None:
    """Without an endpoint there is nothing to look at."""
    with pytest.raises(ConfigError, match="--engine"):
        await examine()


async def command(*arguments: str) -> tuple[int | None, str, str]:
    """Run the command."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "inferencecache", "doctor", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    stdout, stderr = await process.communicate()
    return process.returncode, stdout.decode(), stderr.decode()


async def test_command_prints_json_and_exits_by_the_worst() -> None:
    """Programs get the summary and every finding, in a form that does not change."""
    async with fake_engine() as engine:
        await play(engine, SERVED)
        code, stdout, _ = await command(
            *("--engine", engine.endpoints[0], "--listen", "100ms", "--output", "json"),
            *("--replay-endpoint", engine.replay_endpoints[0], "--block-size", "24"),
        )

    document = json.loads(stdout)
    assert code == document["summary"]["exitCode"] == 2
    assert list(document["summary"]) == ["ok", "info", "warn", "fail", "exitCode"]
    assert all(finding["code"] in CODES for finding in document["findings"])


async def test_command_without_engine() -> None:
    """Wrong usage is one line, as for every command."""
    code, stdout, stderr = await command()

    assert (code, stdout) == (2, "")
    assert stderr.startswith("inferencecache: error: --engine")
