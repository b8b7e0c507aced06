"""The demo as a process: it runs by itself, says what it is, and ends in agreement."""

import signal
import socket

import pytest
from demo_process import start_demo


async def test_demo_ends_by_itself_in_agreement() -> None:
    """After a restart and all evictions the index holds exactly what the engines hold."""
    process = await start_demo("--seconds", "2", "--rate", "100", "--cache-blocks", "400")
    stdout, stderr = await process.communicate()
    lines = stdout.decode().splitlines()

    assert process.returncode == 0, (stdout.decode()[-200:], stderr.decode())
    assert "authentication is off" in lines[0]
    assert [line.split(":")[0] for line in lines[1:4]] == ["engine-0", "engine-1", "engine-2"]
    assert [line.split(":")[0] for line in lines[4:7]] == ["provider", "gateway", "files"]
    assert any("round robin" in line for line in lines[7:])
    assert lines[-1].startswith("index and engines agree about all ")
    assert "\x1b" not in stdout.decode()
    assert stderr == b""


@pytest.mark.parametrize("flag", ["--listen", "--engine-control-listen", "--control-listen"])
async def test_a_taken_address_is_told(flag: str) -> None:
    """In a line, without a traceback; nothing keeps running."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        process = await start_demo(flag, address)
        stdout, stderr = await process.communicate()

    assert process.returncode == 1
    assert stdout == b""
    (line,) = stderr.decode().splitlines()
    assert line.startswith(f"inferencecache: error: cannot listen on {address}: ")
    assert flag in line


async def test_interrupt_ends_with_a_summary() -> None:
    """Ctrl-C is a way to end, not an error."""
    process = await start_demo("--seconds", "0", "--rate", "50")
    assert process.stdout is not None
    while b"/kill" not in await process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    stdout, stderr = await process.communicate()

    assert process.returncode == 0, (stdout.decode()[-200:], stderr.decode())
    assert stdout.decode().splitlines()[-1].startswith("index and engines agree")
