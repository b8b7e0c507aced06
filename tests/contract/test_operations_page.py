"""The operations page takes a newcomer to a secured server: every command on it works."""

import asyncio
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from own_ports import own_port

import inferencecache

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
TOOLS = ("bash", "curl", "openssl", "sha256sum")
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PORTS = ("9090", "8080", "8081")


def script() -> str:
    """Return all commands of the page in one script, on ports of its own."""
    commands = "\n".join(BLOCK.findall(PAGE.read_text()))
    for port in PORTS:
        commands = commands.replace(port, str(own_port()))
    guard = 'trap \'[ -z "${server:-}" ] || kill -9 "$server" 2>/dev/null || true\' EXIT\n'
    return f"set -euo pipefail -x\n{guard}{commands}"


def with_commands(directory: Path) -> dict[str, str]:
    """Return an environment in which the page's own commands are ours."""
    directory.mkdir()
    for name, arguments in (("inferencecache", "-m inferencecache"), ("python", "")):
        path = directory / name
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        path.chmod(0o755)
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("INFERENCECACHE_")
    }
    return {
        **inherited,
        "PATH": f"{directory}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(inferencecache.__file__).parents[1]),
        "GRPC_VERBOSITY": "NONE",
    }


async def run(directory: Path, commands: str) -> tuple[int | None, str]:
    """Run *commands* in an empty directory; return exit code, and what they and the server say."""
    environ = with_commands(directory / "bin")
    (directory / "work").mkdir()
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        commands,
        cwd=directory / "work",
        env=environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


needs_tools = pytest.mark.skipif(
    not all(map(shutil.which, TOOLS)), reason=f"needs {', '.join(TOOLS)}"
)


@needs_tools
@pytest.mark.timeout(300)
async def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    """From an empty directory to TLS, a token and two tenants, and down again."""
    code, output = await run(tmp_path, script())
    log = tmp_path / "work" / "server.log"
    assert code == 0, output + (log.read_text() if log.exists() else "")
    assert "token" not in "".join(
        line for line in log.read_text().splitlines() if "controller_auth" not in line
    )


@needs_tools
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("right", "wrong", "event"),
    [
        ("\ntls-cert-file: server.pem", "\ntls-cert-file: absent.pem", "grpc_tls_load"),
        ("resources: resources", "resources: absent", "a readable directory"),
    ],
)
async def test_waiting_ends_with_the_server_and_shows_why(
    tmp_path: Path, right: str, wrong: str, event: str
) -> None:
    """Nobody looks at a silent prompt while the reason stands in a file."""
    commands = script()
    assert right in commands
    code, output = await run(tmp_path, commands.replace(right, wrong))
    assert code == 1
    assert "gave up on: curl" in output
    assert event in output
