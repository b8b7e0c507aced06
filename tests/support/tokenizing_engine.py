"""An engine that answers ``/tokenize`` over HTTP, by a real tokenizer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from small_tokenizers import BOS, EOS, TURN
from tokenizers import Tokenizer

Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class TokenizingEngine:
    """An engine that serves nothing else.

    Attributes:
        tokenizer: By which it answers.
        questions: What it was asked.
        peers: The connections over which it was.
        answering: Stands in for its own answer.
        address: Where it listens.
    """

    tokenizer: Tokenizer
    questions: list[dict[str, Any]] = field(default_factory=list)
    peers: set[object] = field(default_factory=set)
    answering: Answering | None = None
    address: str = ""

    async def tokenize(self, request: web.Request) -> web.StreamResponse:
        """Answer as engines do."""
        question = await request.json()
        self.questions.append(question)
        self.peers.add(request.transport.get_extra_info("peername") if request.transport else None)
        if self.answering is not None:
            return await self.answering(request)
        token_ids = self.token_ids(question)
        return web.json_response({"count": len(token_ids), "max_model_len": 8, "tokens": token_ids})

    def token_ids(self, question: dict[str, Any]) -> list[int]:
        """Return the tokens of a question."""
        if "prompt" in question:
            adds = question["add_special_tokens"]
            return self.tokenizer.encode(question["prompt"], add_special_tokens=adds).ids
        text = BOS + "".join(
            f"{TURN}{turn['role']}\n{turn['content']}{EOS}" for turn in question["messages"]
        )
        if question.get("add_generation_prompt", True):
            text += f"{TURN}assistant\n"
        return self.tokenizer.encode(text, add_special_tokens=False).ids


@asynccontextmanager
async def tokenizing_engine(tokenizer: Tokenizer) -> AsyncIterator[TokenizingEngine]:
    """Have an engine on a free port."""
    engine = TokenizingEngine(tokenizer)
    app = web.Application()
    app.router.add_post("/tokenize", engine.tokenize)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server = site._server
    assert isinstance(server, asyncio.Server)
    host, port = server.sockets[0].getsockname()[:2]
    engine.address = f"{host}:{port}"
    try:
        yield engine
    finally:
        await runner.cleanup()
