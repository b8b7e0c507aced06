"""A gateway between a real server and upstreams of the test's, all over real sockets."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import aiohttp
from aiohttp import web
from event_records import RecordedLog
from multidict import CIMultiDictProxy
from picker_texts import provider, worker_set
from resource_texts import document
from served_fleet import ServedFleet, serve_fleet

from inferencecache.app.gateway import Gateway
from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.gateway import (
    GatewayPickerSettings,
    GatewayRequestSettings,
    GatewaySettings,
)
from inferencecache.settings.gateway_listen import GatewayListenSettings, GatewayPageSettings
from inferencecache.settings.gateway_upstream import GatewayUpstreamSettings
from inferencecache.settings.picker_choice import PickerSuppressionSettings
from inferencecache.settings.resources import ResourceSettings

LOCAL = "127.0.0.1:0"
CHAT = "/v1/chat/completions"
USAGE = {
    "prompt_tokens": 12,
    "completion_tokens": 3,
    "prompt_tokens_details": {"cached_tokens": 8},
}
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass
class Upstream:
    """An HTTP server that keeps what it is sent, and answers as the test wants.

    Attributes:
        address: Where it listens.
        requests: Path with query, headers and body of each request.
        handler: Answers once the body is read; a whole document if None.
    """

    address: str = ""
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    handler: Handler | None = None

    @property
    def port(self) -> int:
        """The port of its address."""
        return int(self.address.rpartition(":")[2])

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Read the request and answer it."""
        body = b"".join([piece async for piece in request.content.iter_any()])
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append((request.path_qs, headers, body))
        if self.handler is not None:
            return await self.handler(request)
        return web.json_response({"model": "real-name", "choices": [], "usage": USAGE})


@asynccontextmanager
async def serve_upstream(
    handler: Handler | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Upstream]:
    """Serve an upstream for the length of the block.

    Args:
        handler: Answers.
        tls: To serve with; None for plaintext.
    """
    upstream = Upstream(handler=handler)
    runner = web.ServerRunner(
        web.Server(upstream.answer, handler_cancellation=True), shutdown_timeout=0.1
    )
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    host, port = runner.addresses[0][:2]
    upstream.address = f"{host}:{port}"
    try:
        yield upstream
    finally:
        await runner.cleanup()


def worker(address: str, name: str = "w") -> str:
    """Return a worker set of one worker that serves ``m`` under another name."""
    models = "models: [{name: real-name, aliases: [m]}]"
    return worker_set(f"{{{models}, endpoints: [{{name: a, address: '{address}'}}]}}", name)


def vendor(name: str = "vendor", path: str = "") -> str:
    """Return a provider of ``m`` whose backend has its name."""
    spec = (
        f"{{backendRef: {{name: {name}}}, api: OpenAI, path: '{path}',"
        " models: [{name: real-name, aliases: [m]}]}"
    )
    return provider(spec, name)


def backend(spec: str, name: str = "vendor") -> str:
    """Return a GatewayBackend."""
    text = document("GatewayBackend", name, f"{{{spec}}}", namespace="default")
    return text.replace("inferencecache.io", "gateway.linkerd.io")


def tiers(*members: str) -> str:
    """Return the pool ``chat`` with one tier for each member, written ``Kind/name``."""
    listed = ", ".join(
        f"{{name: t{place}, members: [{{kind: {kind}, name: {name}}}]}}"
        for place, (kind, name) in enumerate(member.split("/") for member in members)
    )
    spec = f"{{tiers: [{listed}]}}"
    return document("InferencePool", "chat", spec, namespace="default")


@dataclass
class Answer:
    """An answer that was read to its end."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes


@dataclass
class ServedGateway:
    """A gateway, its server, and a client of it.

    Attributes:
        gateway: The gateway's objects.
        fleet: The server behind it.
        log: What the gateway logs.
        client: A client.
    """

    gateway: Gateway
    fleet: ServedFleet
    log: RecordedLog
    client: aiohttp.ClientSession

    @property
    def url(self) -> str:
        """Where chat requests go."""
        return self.gateway.url + CHAT

    async def chat(
        self, body: bytes = b'{"model": "m", "messages": []}', **options: object
    ) -> Answer:
        """Send a chat request and read the answer."""
        async with self.client.post(self.url, data=body, **options) as response:
            return Answer(response.status, response.headers, await response.read())

    async def metrics(self) -> str:
        """Return the gateway's page of metrics."""
        async with self.client.get(self.gateway.page_url + "/metrics") as response:
            return await response.text()

    async def settled(self) -> None:
        """Wait until nothing is in flight anywhere, and every report has arrived."""
        plane = self.fleet.server.picker.plane
        async with asyncio.timeout(30):
            while (
                self.gateway.metrics.in_flight
                or self.gateway.metrics.pending_reports()
                or plane.decisions.in_flight.total
                or plane.bodies.buffered_bytes
            ):
                await asyncio.sleep(0)

    def reported(self, method: str, result: str = "ok") -> int:
        """Return how many reports of a kind ended so."""
        return next(
            family.numbers.get((method, result), 0)
            for family in self.gateway.metrics.families()
            if family.spec.name.endswith("reports_total")
        )


@asynccontextmanager
async def serve_gateway(
    directory: Path,
    *documents: str,
    requests: GatewayRequestSettings | None = None,
    upstream: GatewayUpstreamSettings | None = None,
    picker: GatewayPickerSettings | None = None,
    **groups: object,
) -> AsyncIterator[ServedGateway]:
    """Serve a gateway before a server that picks from *documents*.

    Args:
        directory: For the documents, and below ``secrets`` for what backends name.
        documents: Objects of both.
        requests: The gateway's own settings.
        upstream: The same.
        picker: The same; the target is put in.
        groups: Further groups of its settings, or of the server's with ``server_`` in front.
    """
    resources = directory / "resources"
    secrets = directory / "secrets"
    resources.mkdir()
    secrets.mkdir(exist_ok=True)
    server = {
        name.removeprefix("server_"): groups.pop(name)
        for name in list(groups)
        if name.startswith("server_")
    }
    server.setdefault(
        "picker_suppression", PickerSuppressionSettings(backoff_min_ns=100 * NS_PER_MS)
    )
    async with AsyncExitStack() as stack:
        fleet = await stack.enter_async_context(serve_fleet(resources, *documents, **server))
        settings = GatewaySettings(
            listen=groups.pop("listen", GatewayListenSettings(bind_address=LOCAL)),
            pages=GatewayPageSettings(bind_address=LOCAL),
            picker=replace(
                picker or GatewayPickerSettings(pool=""), target=fleet.server.grpc_target
            ),
            requests=requests or GatewayRequestSettings(),
            upstream=replace(upstream or GatewayUpstreamSettings(), secrets_directory=str(secrets)),
            resources=ResourceSettings(directory=str(resources), rescan_interval_ns=600 * NS_PER_S),
            **groups,
        )
        log = RecordedLog()
        gateway = Gateway(settings, log)
        await gateway.start()
        stack.push_async_callback(gateway.stop, drain_ns=0)
        client = await stack.enter_async_context(aiohttp.ClientSession(auto_decompress=False))
        yield ServedGateway(gateway=gateway, fleet=fleet, log=log, client=client)


@asynccontextmanager
async def gateway_alone(
    picker: GatewayPickerSettings, fallback: Upstream | None = None, **requests: int
) -> AsyncIterator[tuple[Gateway, aiohttp.ClientSession]]:
    """Run a gateway without a picker of its own, with a client of it.

    Args:
        picker: Where its picker should be.
        fallback: Where requests go for which there is none.
        requests: Settings of requests.
    """
    gateway = Gateway(
        GatewaySettings(
            listen=GatewayListenSettings(bind_address=LOCAL),
            pages=GatewayPageSettings(bind_address=LOCAL),
            picker=picker,
            upstream=GatewayUpstreamSettings(
                fallback_url="" if fallback is None else f"http://{fallback.address}/else"
            ),
            requests=GatewayRequestSettings(**requests),
        ),
        RecordedLog(),
    )
    await gateway.start()
    try:
        async with aiohttp.ClientSession() as client:
            yield gateway, client
    finally:
        await gateway.stop(drain_ns=0)
