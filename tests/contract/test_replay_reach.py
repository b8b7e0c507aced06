"""A replay against an address at which no cache server answers, and one that starts late."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import grpc.aio
import pytest
from own_ports import own_port, own_target
from replay_process import run_replay_command
from replay_traces import hand_trace
from scripted_cache_server import ScriptedServer, resetting_server
from server_process import serving

from inferencecache.app.reach import ServerAbsentError, reach
from inferencecache.app.replay import run_replay
from inferencecache.app.replay_input import load_trace
from inferencecache.client import AsyncCacheClient
from inferencecache.clock import NS_PER_S
from inferencecache.errors import ConfigError
from inferencecache.settings.replay import ReplaySettings
from inferencecache.simulation import Experiment

SHORT_NS = NS_PER_S
OnConnection = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Spectator:
    """Looks on and says nothing."""

    def started(self, target: str, *, is_own_server: bool) -> None:
        """Ignore it."""

    def played(self, experiment: Experiment, requests: int) -> None:
        """Ignore it."""


async def why_absent(target: str, within_ns: int = SHORT_NS) -> ServerAbsentError:
    """Return the error of trying to reach *target*."""
    async with AsyncCacheClient(target) as client:
        with pytest.raises(ServerAbsentError) as caught:
            await reach(client, target, within_ns)
    return caught.value


@contextlib.asynccontextmanager
async def listener(serve: OnConnection) -> AsyncIterator[str]:
    """Accept connections for the length of a block; gives the address."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def speak_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer like a web server that does not know the protocol."""
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


async def test_port_that_refuses() -> None:
    """The error says what was tried, for how long, and what came of it."""
    error = await why_absent(own_target())

    assert "nothing listens there" in error.why
    assert f"no cache server answers at {error.target}: tried for {error.tried_s:.1f} s" in str(
        error
    )
    assert 0.0 < error.tried_s < 5.0


async def test_host_that_does_not_resolve() -> None:
    """A name without an address is told from a server that is down."""
    assert (await why_absent("no-such-host.invalid:9090")).why == "the host name has no address"


async def test_port_of_the_pages() -> None:
    """Whoever gave the port of /metrics is told that it is another one."""
    async with listener(speak_http) as target:
        assert "HTTP/1.1" in (await why_absent(target)).why


async def test_server_that_wants_tls() -> None:
    """Such a server ends the connection, and does not say why; the error knows."""
    async with resetting_server() as target:
        assert "TLS" in (await why_absent(target)).why


async def test_listener_that_says_nothing() -> None:
    """Waiting has an end."""
    released = asyncio.Event()

    async def say_nothing(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        writer.close()

    async with listener(say_nothing) as target:
        assert (await why_absent(target)).why == "there is no answer"
        released.set()


async def test_a_last_attempt_without_an_answer_hides_no_refusal() -> None:
    """Whoever is refused until the time is nearly up hears of that, not of the time."""
    let_go = asyncio.Event()
    seen = 0

    async def refuse_once(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            await let_go.wait()
        writer.transport.abort()

    async with listener(refuse_once) as target:
        assert "TLS" in (await why_absent(target, within_ns=3 * NS_PER_S)).why
        let_go.set()
    assert seen > 1


async def test_another_grpc_server() -> None:
    """A server without our service is not tried again."""
    server = grpc.aio.server()
    target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    error = await why_absent(target, within_ns=60 * NS_PER_S)
    await server.stop(None)

    assert error.why == "what listens there is no cache server"
    assert error.tried_s < 30.0


async def test_server_that_is_just_starting() -> None:
    """One that answers a little later is waited for."""
    knocked = asyncio.Event()

    async def refuse(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        knocked.set()
        writer.transport.abort()

    port = own_port()
    early = await asyncio.start_server(refuse, "127.0.0.1", port)
    target = f"127.0.0.1:{port}"
    server = ScriptedServer()
    async with AsyncCacheClient(target) as client:
        reached = asyncio.create_task(reach(client, target, 30 * NS_PER_S))
        await knocked.wait()
        early.close()
        await early.wait_closed()
        await server.start(target)
        await reached
    await server.kill()

    assert len(server.lookups) == 1


@pytest.mark.parametrize("switch", ["--through-zmq=false", "--through-zmq=true"])
@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
async def test_command_exits_2_with_advice(host: str, switch: str) -> None:
    """A wrong address is wrong usage: one line, with what to do instead."""
    target = f"{host}:{own_port()}"
    result = await run_replay_command(f"--server={target}", "--connect-timeout=1s", switch)

    assert (result.code, result.stdout) == (2, "")
    assert len(result.stderr) == 1
    for words in (target, "tried for", "`inferencecache serve`", "without --server"):
        assert words in result.stderr[0]
    assert "gone" not in result.stderr[0]


async def test_command_at_the_port_of_the_pages() -> None:
    """A real server's HTTP port is recognised."""
    async with serving() as server:
        target = str(server.startup["http_addr"])
        result = await run_replay_command(f"--server={target}", "--connect-timeout=1s")

    assert result.code == 2
    assert "speaks HTTP/1.1; gRPC is on another port" in result.stderr[0]


@pytest.mark.parametrize(
    "target", ["localhost", "http://localhost:9090", ":9090", "a:0", "a:99999"]
)
def test_what_is_no_address_is_refused(tmp_path: Path, target: str) -> None:
    """The client library would guess a port, or wrap it around; we say what is one."""
    trace = load_trace(hand_trace(tmp_path / "t.jsonl"), 0)
    with pytest.raises(ConfigError, match=r"--server.*HOST:PORT"):
        run_replay(trace, ReplaySettings(server=target), Spectator())
