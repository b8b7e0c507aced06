"""A plugin whose producer ignores being cancelled: Picks go on, and the server can end."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from select import POLLIN, poll

import grpc
import pytest
from served_picker import messages
from server_process import serving

from inferencecache.app.picker_plugins import ENTRY_POINT_GROUP
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.kinference.v1 import picker_pb2_grpc as pb_grpc

END_SECONDS = 20.0
MODULE = """
import asyncio

from inferencecache.picker.pipeline import AttributeKey, PluginParameters, PluginType

class Stubborn:
    produces = (AttributeKey("own.example/nothing", float),)

    async def produce(self, request, endpoints):
        while True:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                pass

def make(parameters, services):
    return Stubborn()

STUBBORN = PluginType(name="own-stubborn", parameters=PluginParameters, make=make)
"""
CONFIG = """
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
  - {type: own-stubborn, name: mule}
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Install a package with the plugin, and return where; the configuration is beside it."""
    info = tmp_path / "own_stubborn-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-stubborn\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        f"[{ENTRY_POINT_GROUP}]\nown-stubborn = own_stubborn:STUBBORN\n"
    )
    (tmp_path / "own_stubborn.py").write_text(MODULE)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


def children_of(process_id: int) -> list[int]:
    """Return the processes that *process_id* has started."""
    return [int(child) for child in _children_file(process_id).read_text().split()]


def _children_file(process_id: int) -> Path:
    return Path(f"/proc/{process_id}/task/{process_id}/children")


def end_of(process_id: int) -> Callable[[float], bool]:
    """Return what waits so many seconds for the end of a process, and says whether it came."""
    descriptor = os.pidfd_open(process_id)

    def wait(seconds: float) -> bool:
        try:
            ends = poll()
            ends.register(descriptor, POLLIN)
            return bool(ends.poll(seconds * 1000))
        finally:
            os.close(descriptor)

    return wait


async def test_the_process_ends_all_the_same(installed: Path) -> None:
    """With exit code 0 and one line that names the task; the process that parses ends, too."""
    async with serving(
        f"--picker-config={installed / 'config.yaml'}",
        "--picker-endpoints=m=10.0.0.1:8000",
        "--drain-timeout=1s",
        "--picker-producer-timeout=20ms",
        "--picker-inline-parse-bytes=64",
        environ={"PYTHONPATH": str(installed)},
    ) as server:
        async with grpc.aio.insecure_channel(server.grpc_target) as channel:
            picker = pb_grpc.PickerStub(channel)
            body = json.dumps({"model": "m", "prompt": "x" * 1000}).encode()
            pushed = await picker.PushBody(messages([body]))
            picked = await picker.Pick(pb.PickRequest(body_stream_id=pushed.stream_id))
            assert picked.outcome == pb.PickResponse.DEGRADED
        ends = [end_of(child) for child in children_of(server.process.pid)]
        assert ends
        async with asyncio.timeout(END_SECONDS):
            assert await server.end(signal.SIGTERM) == 0
        assert server.events[-2:] == ["graceful_shutdown_done", "tasks_left_at_end"]
        line = json.loads(server.lines[-1])
        assert (line["level"], line["count"]) == ("WARN", 1)
        assert line["names"] == "picker-producer mule"
        assert all([await asyncio.to_thread(ended, END_SECONDS) for ended in ends])
