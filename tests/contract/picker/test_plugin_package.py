"""The example package: installed as anybody would, named in a file, seen through real gRPC."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.request import urlopen

import grpc
import pytest
from served_picker import messages
from server_process import ServerProcess, serving, spawn

import inferencecache
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.kinference.v1 import picker_pb2_grpc as pb_grpc

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "picker_plugin"
BODY = b'{"model": "chat", "messages": []}'
TEAM = (("x-acme-team", "support"),)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the example into an empty directory, without a network, and return that."""
    target = tmp_path_factory.mktemp("installed")
    source = tmp_path_factory.mktemp("source") / "picker_plugin"
    shutil.copytree(EXAMPLE, source)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([*command, str(source)], check=True, timeout=100)
    return target


@pytest.fixture
async def server(installed: Path) -> AsyncIterator[ServerProcess]:
    """Serve with the example's own configuration and engines."""
    async with serving(
        f"--picker-config={EXAMPLE / 'config.yaml'}",
        f"--resources={EXAMPLE / 'resources'}",
        environ={"PYTHONPATH": str(installed)},
    ) as process:
        yield process


def read_page(url: str) -> str:
    """Return what stands at *url*."""
    with urlopen(url) as page:  # noqa: S310 - our own server
        return page.read().decode()


async def pick(
    picker: pb_grpc.PickerStub, metadata: tuple[tuple[str, str], ...] = ()
) -> pb.PickResponse:
    """Push a body and pick."""
    pushed = await picker.PushBody(messages([BODY]))
    return await picker.Pick(pb.PickRequest(body_stream_id=pushed.stream_id), metadata=metadata)


async def test_its_plugins_decide(server: ServerProcess) -> None:
    """Quiet hours deny whoever is not on call; the others go where the wind blows."""
    async with grpc.aio.insecure_channel(server.grpc_target) as channel:
        picker = pb_grpc.PickerStub(channel)
        denied = await pick(picker)
        picked = [await pick(picker, TEAM) for _ in range(4)]

    assert denied.outcome == pb.PickResponse.POLICY_REJECTED
    assert denied.reason == "denied_by=acme-quiet-hours;denial=quiet hours"
    assert denied.response_id == 0
    assert [answer.outcome for answer in picked] == [pb.PickResponse.OK] * 4
    assert {answer.local.endpoint for answer in picked} == {"10.0.0.2:8000"}
    assert all("rank=default" in answer.reason for answer in picked)
    metrics = await asyncio.to_thread(read_page, f"{server.http_url}/metrics")
    assert 'inferencecache_picker_producer_seconds_count{producer="green"} 5.0' in metrics


async def test_a_mistake_in_the_file_ends_the_start(installed: Path, tmp_path: Path) -> None:
    """With exit code 2, and the type that was meant."""
    text = (EXAMPLE / "config.yaml").read_text().replace("acme-green-energy", "acme-green-enrgy")
    (tmp_path / "config.yaml").write_text(text)
    process = await spawn(
        "--insecure-disable-auth",
        "--picker-config=config.yaml",
        directory=str(tmp_path),
        environ={"PYTHONPATH": str(installed)},
    )
    assert await process.exited() == 2
    process.process._transport.close()
    assert "plugins[1].type" in process.lines[-1]
    assert "acme-green-energy, which is nearest" in process.lines[-1]


def test_its_own_tests_pass(installed: Path) -> None:
    """A package ships with tests that need no server."""
    homes = [str(installed), str(Path(inferencecache.__file__).parents[1])]
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE / "tests")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(homes), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=installed,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert finished.returncode == 0, finished.stdout
    assert "7 passed" in finished.stdout
