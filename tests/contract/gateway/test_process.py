"""``inferencecache gateway`` as a process of its own."""

import asyncio
import json
import os
import sys
from pathlib import Path
from signal import SIGTERM

import aiohttp
import pytest
from served_fleet import serve_fleet
from served_gateway import CHAT, USAGE, serve_upstream, worker


async def start(*arguments: str) -> asyncio.subprocess.Process:
    """Start the command on free ports."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "inferencecache",
        "gateway",
        "--listen=127.0.0.1:0",
        "--metrics-listen=127.0.0.1:0",
        *arguments,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ,
    )


async def test_the_command_serves_until_a_signal(tmp_path: Path) -> None:
    """And ends with exit code 0, without a word about bodies in its log."""
    async with (
        serve_upstream() as upstream,
        serve_fleet(tmp_path, worker(upstream.address)) as fleet,
    ):
        process = await start(f"--picker={fleet.server.grpc_target}", "--log-level=debug")
        assert process.stderr is not None
        started = json.loads(await process.stderr.readline())
        assert started["msg"] == "gateway_started"
        body = b'{"model": "m", "messages": ["a-secret-thought"]}'
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"http://{started['addr']}{CHAT}", data=body) as response,
        ):
            assert (response.status, (await response.json())["usage"]) == (200, USAGE)
        process.send_signal(SIGTERM)
        rest = await process.stderr.read()
        assert await process.wait() == 0
        events = [json.loads(line)["msg"] for line in rest.splitlines()]
        assert events == ["gateway_request", "gateway_stopping", "gateway_stopped"]
        assert b"a-secret-thought" not in rest


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--picker=nowhere"], 2, b"--picker: 'nowhere' is not allowed"),
        (["--resources=/nowhere"], 2, b"--resources"),
        (["--api-keys=/nowhere"], 1, b"gateway_keys_load"),
        (["--tls-cert-file=/nowhere", "--tls-key-file=/nowhere"], 1, b"gateway_tls_load"),
    ],
)
async def test_what_keeps_it_from_starting(arguments: list[str], code: int, words: bytes) -> None:
    """The last line says so: 2 for settings, 1 for files and listeners."""
    process = await start(*arguments)
    _, errors = await process.communicate()
    assert process.returncode == code
    assert words in errors.splitlines()[-1]
