"""A whole server that picks from files, with a client of its picker and of its control listener."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import grpc
from certificates import replace_file
from served_picker import PROMPT, messages

from inferencecache.app.server import Server
from inferencecache.clock import NS_PER_S, Clock
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.kinference.v1 import picker_pb2_grpc as pb_grpc
from inferencecache.settings.picker import PickerSettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.settings.throwaway import throwaway_server_settings

HEALTH = "/grpc.health.v1.Health/Check"
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"


@dataclass
class ServedFleet:
    """A server and its clients.

    Attributes:
        server: The server's objects.
        directory: Its resource files.
        stub: Calls its picker.
        channel: The connection to it.
        http: Calls its control listener.
    """

    server: Server
    directory: Path
    stub: pb_grpc.PickerStub
    channel: grpc.aio.Channel
    http: aiohttp.ClientSession

    async def put(self, *documents: str, name: str = "all.yaml") -> None:
        """Write the files anew, and wait until they are in force."""
        text = "---\n".join(documents) or "# nothing\n"
        replace_file(self.directory / name, text.encode())  # the server may be looking by itself
        await self.server.resources.look()

    async def pick(
        self, body: bytes = PROMPT, timeout_s: float | None = None, **fields: object
    ) -> pb.PickResponse:
        """Push a body and pick for it."""
        pushed = await self.stub.PushBody(messages([body]))
        request = pb.PickRequest(body_stream_id=pushed.stream_id, **fields)
        return await self.stub.Pick(request, timeout=timeout_s)

    async def pull(self, picked: pb.PickResponse) -> bytes:
        """Pull the body."""
        pull = self.stub.PullBody(pb.PullBodyRequest(response_id=picked.response_id))
        return b"".join([message.chunk async for message in pull])

    async def abort(self, picked: pb.PickResponse, reason: int) -> bool:
        """Abort."""
        request = pb.AbortRequest(response_id=picked.response_id, reason=reason)
        return (await self.stub.Abort(request)).released

    async def first(self, picked: pb.PickResponse, status: int) -> bool:
        """Report the status of an answer."""
        request = pb.ReportFirstTokenRequest(
            response_id=picked.response_id, observed_ttft_ms=5, upstream_status=status
        )
        return (await self.stub.ReportFirstToken(request)).acknowledged

    async def final(self, picked: pb.PickResponse) -> bool:
        """Report the end of an answer."""
        request = pb.ReportFinalTokenRequest(response_id=picked.response_id)
        return (await self.stub.ReportFinalToken(request)).acknowledged

    async def page(self, path: str) -> dict[str, Any]:
        """Return a page of the control listener."""
        async with self.http.get(self.server.control_url + path) as answer:
            assert answer.status == 200, await answer.text()
            return json.loads(await answer.text())

    async def post(self, path: str, body: bytes) -> tuple[int, str]:
        """Post to the control listener; return status and text."""
        async with self.http.post(self.server.control_url + path, data=body) as answer:
            return answer.status, await answer.text()

    async def explained(self, body: bytes, query: str = "") -> dict[str, Any]:
        """Return what the server says of a body that goes nowhere."""
        status, text = await self.post(f"/debug/picker/explain{query}", body)
        assert status == 200, text
        return json.loads(text)

    async def states(self) -> dict[str, str]:
        """Return the state of each object by name."""
        page = await self.page("/debug/picker/resources")
        return {item["metadata"]["name"]: item["status"]["state"] for item in page["items"]}

    async def health(self, service: str = "kinference.v1.Picker") -> bytes:
        """Return what the health service says, as bytes."""
        check = self.channel.unary_unary(HEALTH)
        return await check(b"\x0a" + bytes([len(service)]) + service.encode())

    async def metrics(self) -> str:
        """Return the page of metrics."""
        return (await self.server.metrics.render()).decode()


@asynccontextmanager
async def serve_fleet(
    directory: Path,
    *documents: str,
    clock: Clock | None = None,
    picker: PickerSettings | None = None,
    **groups: object,
) -> AsyncIterator[ServedFleet]:
    """Serve *documents* for the length of the block; nothing is read again but by ``put``.

    Args:
        directory: Where they are written.
        documents: Objects in YAML.
        clock: The server's time; the system's if None.
        picker: What the picker may hold.
        groups: Further groups of settings.
    """
    (directory / "all.yaml").write_text("---\n".join(documents) or "# nothing\n")
    settings = throwaway_server_settings(
        resources=ResourceSettings(directory=str(directory), rescan_interval_ns=600 * NS_PER_S),
        picker=picker or PickerSettings(),
        **groups,
    )
    server = Server(settings, clock=clock)
    await server.start()
    try:
        async with (
            grpc.aio.insecure_channel(server.grpc_target) as channel,
            aiohttp.ClientSession() as http,
        ):
            yield ServedFleet(
                server=server,
                directory=directory,
                stub=pb_grpc.PickerStub(channel),
                channel=channel,
                http=http,
            )
    finally:
        await server.stop(drain_ns=0)


async def until_health(served: ServedFleet, expected: bytes) -> None:
    """Wait until the picker's health is *expected*."""
    async with asyncio.timeout(30):
        while await served.health() != expected:
            await asyncio.sleep(0)
