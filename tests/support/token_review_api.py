"""A small HTTPS server that speaks TokenReview, as the API server of a cluster does."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from certificates import Authority

OWN_TOKEN = "token-of-this-pod"
CONTROLLER = "system:serviceaccount:cache:controller"
PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
REDIRECTS = {302, 307, 308}


@dataclass(kw_only=True)
class Cluster:
    """What the API knows, and what it was asked.

    Attributes:
        directory: Where a pod's service account is mounted.
        environ: What a pod finds in its environment.
        tokens: Token -> (username, audiences it is meant for).
        asked: The specs of all reviews.
        knows_audiences: Whether it looks at audiences at all.
        status: What it answers reviews with.
        error: What it says of tokens that are nobody's.
        answer: Sent instead of a review when given.
        was_asked: Set when a review has come in.
        may_answer: Cleared, it keeps reviews waiting.
    """

    directory: Path
    environ: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, tuple[str, set[str]]] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    knows_audiences: bool = True
    status: int = 201
    error: str = ""
    answer: bytes | None = None
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Answer at once, unless told otherwise."""
        self.may_answer.set()

    def add(self, token: str, username: str = CONTROLLER, *audiences: str) -> None:
        """Let *token* be one of *username*, meant for *audiences*."""
        self.tokens[token] = (username, set(audiences))

    async def review(self, request: web.Request) -> web.Response:
        """Answer one review."""
        if request.headers.get("Authorization") != f"Bearer {OWN_TOKEN}":
            return web.Response(status=401)
        body = await request.json()
        assert (body["apiVersion"], body["kind"]) == ("authentication.k8s.io/v1", "TokenReview")
        spec = body["spec"]
        self.asked.append(spec)
        self.was_asked.set()
        await self.may_answer.wait()
        if self.answer is not None:
            elsewhere = {"Location": PATH} if self.status in REDIRECTS else None
            return web.Response(status=self.status, body=self.answer, headers=elsewhere)
        return web.json_response({**body, "status": self._status(spec)}, status=self.status)

    def _status(self, spec: dict[str, Any]) -> dict[str, Any]:
        username, meant_for = self.tokens.get(spec["token"], ("", set()))
        wanted = set(spec.get("audiences", ()))
        if not username or (self.knows_audiences and wanted and not wanted & meant_for):
            return {"authenticated": False, **({"error": self.error} if self.error else {})}
        status: dict[str, Any] = {"authenticated": True, "user": {"username": username, "uid": "1"}}
        if self.knows_audiences and wanted:
            status["audiences"] = sorted(wanted & meant_for)
        return status


@asynccontextmanager
async def cluster(directory: Path) -> AsyncIterator[Cluster]:
    """Run an API server and mount a service account in *directory*."""
    authority = Authority()
    server_files = authority.server().write(directory, "api")
    authority.write(directory / "ca.crt")
    (directory / "token").write_text(OWN_TOKEN + "\n")
    running = Cluster(directory=directory)
    app = web.Application()
    app.router.add_post(PATH, running.review)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*server_files)
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        port = runner.addresses[0][1]
        running.environ = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(port),
        }
        yield running
    finally:
        await runner.cleanup()
