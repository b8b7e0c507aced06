"""A running server with a client of its control listener."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import grpc
from log_lines import LogLines

from inferencecache.app.server import Server
from inferencecache.settings.server import ServerSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1 import inferencecache_pb2_grpc as rpc

SCOPE = {"tenant_id": "t1", "model_id": "m1", "hash_scheme": "vllm"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back.

    Attributes:
        status: HTTP status.
        text: The body.
        headers: The headers.
    """

    status: int
    text: str
    headers: Any


class Controlled:
    """The server, and what one does with it."""

    def __init__(self, server: Server, http: aiohttp.ClientSession, log: LogLines) -> None:
        self.server = server
        self.http = http
        self.log = log

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        **options: Any,
    ) -> Reply:
        """Send one request to the control listener."""
        url = self.server.control_url + path
        async with self.http.request(method, url, data=body, **options) as answer:
            return Reply(answer.status, await answer.text(), answer.headers)

    async def get(self, path: str, token: str = "") -> Reply:
        """Get a page, with a bearer token if one is given."""
        return await self.ask("GET", path, headers=bearer(token))

    async def report(self, *updates: pb.CacheStateUpdate) -> None:
        """Report over gRPC."""
        async with grpc.aio.insecure_channel(self.server.grpc_target) as channel:
            stub = rpc.InferenceCacheStub(channel)
            assert (await stub.ReportCacheState(iter(updates))).accepted

    async def metric(self, name: str, **labels: str) -> float | None:
        """Return one number of the metrics page, None if it is not there."""
        wanted = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
        series = f"{name}{{{wanted}}}" if wanted else name
        for line in (await self.server.metrics.render()).decode().splitlines():
            found, _, value = line.rpartition(" ")
            if found == series:
                return float(value)
        return None


@asynccontextmanager
async def controlled(
    settings: ServerSettings | None = None, environ: dict[str, str] | None = None
) -> AsyncIterator[Controlled]:
    """Run a server, open to everybody on loopback unless *settings* say otherwise."""
    log = LogLines()
    server = Server(settings or throwaway_server_settings(), log, environ=environ)
    await server.start()
    try:
        async with aiohttp.ClientSession() as http:
            yield Controlled(server, http, log)
    finally:
        async with asyncio.timeout(30):
            await server.stop(drain_ns=0)


def bearer(token: str) -> dict[str, str]:
    """Return the header that carries *token*, none without one."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def update(replica_id: str = "a", **fields: Any) -> pb.CacheStateUpdate:
    """Return an update with one block."""
    prefixes = [pb.PrefixEntry(block_hashes=[b"1"], block_token_counts=[64])]
    return pb.CacheStateUpdate(
        **{"replica_id": replica_id, "prefixes": prefixes, **SCOPE, **fields}
    )
