"""Answers that come bit by bit: at whose pace, what is read of them, and how they may end."""

import asyncio
import json
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from served_gateway import Handler, ServedGateway, serve_gateway, serve_upstream, worker

from inferencecache.clock import NS_PER_MS
from inferencecache.settings.gateway_upstream import GatewayUpstreamSettings

MIB = 1_048_576
REQUEST = b'{"model": "m", "messages": [], "stream": true}'


def event(text: str) -> bytes:
    """Return an event of a chat answer."""
    data = {"model": "real-name", "choices": [{"delta": {"content": text}}]}
    return b"data: " + json.dumps(data).encode() + b"\n\n"


LAST = (
    b'data: {"model": "real-name", "choices": [], "usage": {"prompt_tokens": 7,'
    b' "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}}\n\n'
    b"data: [DONE]\n\n"
)


def streaming(send: Callable[[web.StreamResponse], Awaitable[None]]) -> Handler:
    """Return a handler that answers with a stream of what *send* writes."""

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        out = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await out.prepare(request)
        await send(out)
        await out.write_eof()
        return out

    return handler


class Finals:
    """Final reports as the picker takes them."""

    def __init__(self, served: ServedGateway) -> None:
        self.reports: list[object] = []
        decisions = served.fleet.server.picker.plane.decisions
        take = decisions.final_token

        def keep(response_id: int, report: object, now_ns: int) -> bool:
            self.reports.append(report)
            return take(response_id, report, now_ns)  # type: ignore[arg-type] # passed on as it came

        decisions.final_token = keep  # type: ignore[method-assign] # listens to the real one


async def test_events_arrive_while_the_answer_is_made(tmp_path: Path) -> None:
    """Each before the next is sent; usage, model and gaps are reported."""
    seen: asyncio.Queue[None] = asyncio.Queue()

    async def send(out: web.StreamResponse) -> None:
        for text in ("a", "b", "c"):
            await out.write(event(text))
            await seen.get()
        await out.write(LAST)

    async with (
        serve_upstream(streaming(send)) as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        finals = Finals(served)
        async with served.client.post(served.url, data=REQUEST) as response:
            assert response.headers["Content-Type"] == "text/event-stream"
            for text in ("a", "b", "c"):
                assert await response.content.readuntil(b"\n\n") == event(text)
                seen.put_nowait(None)
            assert await response.read() == LAST
        await served.settled()
        (report,) = finals.reports
        assert (report.model, report.prompt_tokens) == ("real-name", 7)
        assert (report.completion_tokens, report.cached_tokens) == (3, 4)
        assert report.itl_bucket_layout == 1
        assert sum(report.itl_bucket_counts) <= 2
        assert len(report.itl_bucket_counts) in {0, 15}


async def test_a_whole_answer_has_no_gaps(tmp_path: Path) -> None:
    """And its usage is read all the same."""
    async with (
        serve_upstream() as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        finals = Finals(served)
        await served.chat()
        await served.settled()
        (report,) = finals.reports
        assert (report.prompt_tokens, report.completion_tokens, report.cached_tokens) == (12, 3, 8)
        assert (report.itl_bucket_counts, report.itl_bucket_layout) == ((), 0)


async def test_whoever_reads_slowly_holds_the_engine_up(tmp_path: Path) -> None:
    """What the gateway holds of an answer of 64 MiB is bounded; then all of it arrives."""
    total, piece = 64 * MIB, b"x" * 65_536
    written = 0

    async def send(out: web.StreamResponse) -> None:
        nonlocal written
        for _ in range(total // len(piece)):
            await out.write(piece)
            written += len(piece)

    async with (
        serve_upstream(streaming(send)) as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
        aiohttp.ClientSession(read_bufsize=65_536) as client,
        client.post(served.url, data=REQUEST) as response,
    ):
        await response.content.readexactly(1)
        tracemalloc.start()
        before = -1
        while written != before:  # until nobody takes anything any more
            before = written
            for _ in range(2_000):
                await asyncio.sleep(0)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert written < total / 2
        assert peak < 8 * MIB
        arrived = 1
        while chunk := await response.content.readany():
            arrived += len(chunk)
        assert arrived == total


async def test_a_client_that_leaves_ends_the_answer(tmp_path: Path) -> None:
    """The engine is let go of; what was read of the answer is reported."""
    is_let_go = asyncio.Event()

    async def send(out: web.StreamResponse) -> None:
        try:
            await out.write(event("a"))
            await asyncio.get_running_loop().create_future()
        finally:
            is_let_go.set()

    async with (
        serve_upstream(streaming(send)) as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        finals = Finals(served)
        async with served.client.post(served.url, data=REQUEST) as response:
            await response.content.readuntil(b"\n\n")
            response.close()
        await asyncio.wait_for(is_let_go.wait(), 30)
        await served.settled()
        assert [report.model for report in finals.reports] == ["real-name"]
        assert served.reported("Abort") == 0


async def test_a_client_that_leaves_before_the_answer_is_an_abort(tmp_path: Path) -> None:
    """Whether the engine has it already, or not yet."""
    has_come, is_let_go = asyncio.Event(), asyncio.Event()

    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        has_come.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            is_let_go.set()
        raise AssertionError

    async with (
        serve_upstream(handler) as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        asking = asyncio.create_task(served.chat())
        await has_come.wait()
        asking.cancel()
        await asyncio.wait_for(is_let_go.wait(), 30)
        await served.settled()
        assert served.reported("Abort") == 1
        assert served.reported("ReportFirstToken") == served.reported("ReportFinalToken") == 0


async def test_a_client_that_leaves_during_its_upload_leaves_nothing(tmp_path: Path) -> None:
    """The picker has no body of it, and was never asked."""
    has_begun = asyncio.Event()

    async def pieces() -> object:
        yield b'{"model": "m", '
        has_begun.set()
        await asyncio.get_running_loop().create_future()

    async with serve_gateway(tmp_path, worker("127.0.0.1:1")) as served:
        asking = asyncio.create_task(served.chat(pieces()))
        await has_begun.wait()
        plane = served.fleet.server.picker.plane
        while not plane.bodies.buffered_bytes:
            await asyncio.sleep(0)
        asking.cancel()
        await served.settled()
        while plane.bodies.buffered_bytes:
            await asyncio.sleep(0)
        assert served.reported("Abort") == 0


def hanging_up(*, begun: object) -> Handler:
    """Return a handler that hangs up within its answer, or before its first byte."""

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        out = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await out.prepare(request)
        if begun:
            await out.write(event("a"))
        assert request.transport is not None
        request.transport.close()
        return out

    return handler


@pytest.mark.parametrize("begun", [True, False])
async def test_an_answer_that_is_cut_off_does_not_look_whole(tmp_path: Path, begun: object) -> None:
    """Once it has begun the client's connection ends; before that there is another attempt."""
    async with (
        serve_upstream(hanging_up(begun=begun)) as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        if begun:
            with pytest.raises(aiohttp.ClientPayloadError):
                await served.chat(REQUEST)
            assert "inferencecache_gateway_answers_cut_total 1.0" in await served.metrics()
        else:
            assert (await served.chat(REQUEST)).status == 502
        await served.settled()
        assert len(upstream.requests) == (1 if begun else 2)
        assert served.reported("Abort") == len(upstream.requests)


async def test_answers_that_are_cut_off_are_one_line_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An engine that dies has many of them; it is no error of the gateway."""
    async with (
        serve_upstream(hanging_up(begun=True)) as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        for _ in range(3):
            with pytest.raises(aiohttp.ClientPayloadError):
                await served.chat(REQUEST)
        await served.settled()
        lines = served.log.named("gateway_attempt_failed")
        assert [line["failure"] for line in lines] == ["cut"]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_silence_within_an_answer_ends_it(tmp_path: Path) -> None:
    """After a time that is a setting."""

    async def send(out: web.StreamResponse) -> None:
        await out.write(event("a"))
        await asyncio.get_running_loop().create_future()

    upstream_settings = GatewayUpstreamSettings(silence_timeout_ns=50 * NS_PER_MS)
    async with (
        serve_upstream(streaming(send)) as upstream,
        serve_gateway(tmp_path, worker(upstream.address), upstream=upstream_settings) as served,
    ):
        with pytest.raises(aiohttp.ClientPayloadError):
            await served.chat(REQUEST)
        await served.settled()


@pytest.mark.parametrize("kind", ["short", "none"])
async def test_a_body_that_does_not_come_whole_is_not_sent(tmp_path: Path, kind: str) -> None:
    """The picker promises so many bytes; with less, the engine sees a broken request at most."""
    async with (
        serve_upstream() as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        service = served.fleet.server.picker.plane
        promise = service.settle

        def settle(body: object, question: object, choice: object) -> object:
            answer = promise(body, question, choice)  # type: ignore[arg-type] # passed on
            if kind == "none":
                service.bodies.release(body)  # type: ignore[arg-type] # the same
            else:
                body.content = Longer(body.content)  # type: ignore[attr-defined] # the same
            return answer

        service.settle = settle  # type: ignore[method-assign] # makes it break its word
        answer = await served.chat()
        assert answer.status == 503
        assert all(len(body) < 40 for _, _, body in upstream.requests)
        await served.settled()
        page = await served.fleet.metrics()
        assert 'inferencecache_picker_aborts_total{reason="PULL_FAILED"} 2.0' in page


class Longer:
    """A body that ends before its end."""

    def __init__(self, content: object) -> None:
        self._content = content
        self.length = content.length  # type: ignore[attr-defined] # a rope

    def pieces(self, size: int) -> object:
        """Yield all but the last byte."""
        whole = b"".join(self._content.pieces(size))  # type: ignore[attr-defined] # a rope
        yield whole[:-1]
