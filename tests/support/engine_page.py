"""An engine's metrics page over HTTP, its text under the test's control."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

VLLM = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{model_name="m"}} {running}
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{model_name="m"}} {waiting}
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{{model_name="m"}} {queries}
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{{model_name="m"}} {hits}
"""


class EnginePage:
    """The page and who asked for it.

    Attributes:
        text: What is served.
        status: With which HTTP status.
        is_cut: The connection breaks after the text.
        asked: How often it was asked for.
        headers: With which headers, the last time.
    """

    def __init__(self) -> None:
        self.url = ""
        self.text = vllm_page()
        self.status = 200
        self.is_cut = False
        self.asked = 0
        self.headers: Mapping[str, str] = {}
        self.was_asked = asyncio.Event()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve the page."""
        self.asked += 1
        self.headers = request.headers
        self.was_asked.set()
        if not self.is_cut:
            return web.Response(status=self.status, text=self.text)
        body = self.text.encode()
        answer = web.StreamResponse(headers={"Content-Length": str(2 * len(body))})
        await answer.prepare(request)
        await answer.write(body)
        assert request.transport is not None
        request.transport.close()
        return answer


def vllm_page(*, running: int = 2, waiting: int = 0, queries: int = 0, hits: int = 0) -> str:
    """Return the least of a vLLM page that makes a load signal."""
    return VLLM.format(running=running, waiting=waiting, queries=queries, hits=hits)


@asynccontextmanager
async def engine_page() -> AsyncIterator[EnginePage]:
    """Serve a page for the length of the block."""
    page = EnginePage()
    runner = web.ServerRunner(web.Server(page.answer, access_log=None))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    page.url = f"http://127.0.0.1:{port}/metrics"
    try:
        yield page
    finally:
        await runner.cleanup()
