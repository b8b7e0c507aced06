"""What the picker's contract asks of a caller, seen from the picker's side."""

import asyncio
import io
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from certificates import Authority
from served_gateway import ServedGateway, serve_gateway, serve_upstream, worker

from inferencecache.settings.delivery import ServerTlsSettings
from inferencecache.settings.gateway import GatewayRequestSettings
from inferencecache.settings.tls import TlsSettings

MIB = 1_048_576


class Uploads:
    """What the picker is told about uploads, and the chunks of them."""

    def __init__(self, served: ServedGateway) -> None:
        self.declared: list[int | None] = []
        self.chunks: list[int] = []
        plane = served.fleet.server.picker.plane
        open_upload, append = plane.open_upload, plane.append

        def keep_declared(declared_bytes: int | None) -> object:
            self.declared.append(declared_bytes)
            return open_upload(declared_bytes)

        def keep_chunk(body: object, chunk: bytes) -> None:
            self.chunks.append(len(chunk))
            append(body, chunk)  # type: ignore[arg-type] # passed on as it came

        plane.open_upload = keep_declared  # type: ignore[method-assign] # listens to the real one
        plane.append = keep_chunk  # type: ignore[method-assign] # the same


async def pieces(body: bytes) -> AsyncIterator[bytes]:
    """Yield *body* without its length."""
    for start in range(0, len(body), 300_000):
        yield body[start : start + 300_000]


@pytest.mark.parametrize("chunk_bytes", [16_384, MIB])
async def test_lengths_are_declared_and_chunks_are_small(tmp_path: Path, chunk_bytes: int) -> None:
    """The length where the client has announced one, and no chunk above the limit."""
    body = b'{"model": "m", "messages": ["' + b"x" * (3 * MIB) + b'"]}'
    async with (
        serve_upstream() as upstream,
        serve_gateway(
            tmp_path,
            worker(upstream.address),
            requests=GatewayRequestSettings(chunk_bytes=chunk_bytes),
        ) as served,
    ):
        uploads = Uploads(served)
        assert (await served.chat(io.BytesIO(body))).status == 200
        assert (await served.chat(pieces(body))).status == 200
        assert uploads.declared == [len(body), None]
        assert sum(uploads.chunks) == 2 * len(body)
        assert max(uploads.chunks) <= chunk_bytes
        await served.settled()


@asynccontextmanager
async def reluctant() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """Serve an upstream that reads nothing of a body until it is told to."""
    go_on = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await go_on.wait()
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        left = length
        while left:
            left -= len(await reader.read(min(left, MIB)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)  # or the system holds much
    server = await asyncio.start_server(serve, sock=listening)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"{host}:{port}", go_on
    finally:
        server.close()
        await server.wait_closed()


async def test_a_body_is_pulled_as_fast_as_its_destination_reads(tmp_path: Path) -> None:
    """The picker holds what is not read; the gateway does not take it all."""
    body = b'{"model": "m", "messages": [], "user": "' + b"x" * (16 * MIB) + b'"}'
    async with reluctant() as (address, go_on), serve_gateway(tmp_path, worker(address)) as served:
        plane = served.fleet.server.picker.plane
        handed_out = 0
        settle = plane.settle

        def counting(body: object, question: object, choice: object) -> object:
            nonlocal handed_out
            answer = settle(body, question, choice)  # type: ignore[arg-type] # passed on
            body.content = Counted(body.content)  # type: ignore[attr-defined] # a body
            return answer

        class Counted:
            """A body that tells what was taken of it."""

            def __init__(self, content: object) -> None:
                self._content = content
                self.length = content.length  # type: ignore[attr-defined] # a rope

            def pieces(self, size: int) -> object:
                """Yield what the body has."""
                nonlocal handed_out
                for piece in self._content.pieces(size):  # type: ignore[attr-defined] # a rope
                    handed_out += len(piece)
                    yield piece

        plane.settle = counting  # type: ignore[method-assign] # listens to the real one
        asking = asyncio.create_task(served.chat(io.BytesIO(body)))
        before = -1
        while not handed_out or handed_out != before:  # until nobody takes anything any more
            before = handed_out
            for _ in range(500):
                await asyncio.sleep(0)
        assert 0 < handed_out < len(body)
        go_on.set()
        assert (await asking).status == 200
        assert handed_out == len(body) + len("real-name") - len("m")
        await served.settled()


ACCESS = """\
apiVersion: inferencecache.io/v1alpha1
kind: TenantAccess
metadata: {name: gateway}
spec: {clients: ["cn:gateway"], read: [acme]}
"""


async def test_the_picker_may_ask_for_a_certificate(tmp_path: Path) -> None:
    """And lets the gateway pick for some tenants only."""
    authority = Authority()
    cert_file, key_file = authority.server().write(tmp_path)
    ca_file = authority.write(tmp_path / "ca.pem")
    own_cert, own_key = authority.client("gateway").write(tmp_path, "gateway")
    async with (
        serve_upstream() as upstream,
        serve_gateway(
            tmp_path,
            worker(upstream.address),
            ACCESS,
            server_tls=TlsSettings(
                cert_file=str(cert_file), key_file=str(key_file), client_ca_file=str(ca_file)
            ),
            picker_tls=ServerTlsSettings(
                ca_file=str(ca_file), cert_file=str(own_cert), key_file=str(own_key)
            ),
        ) as served,
    ):
        assert (await served.chat(headers={"X-Tenant-Id": "acme"})).status == 200
        await served.settled()
        answer = await served.chat(headers={"X-Tenant-Id": "other"})
        assert (answer.status, b"tenant_forbidden" in answer.body) == (403, True)
        assert served.fleet.server.picker.plane.decisions.in_flight.total == 0
