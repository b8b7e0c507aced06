"""Whatever answers where a control listener should be, the reason is told in a few words."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from inferencecache.app.get import PAGE, ask_server
from inferencecache.clock import NS_PER_MS
from inferencecache.errors import ConfigError
from inferencecache.settings.get import ControlClientSettings
from inferencecache.transport.control_page import ControlPageError, fetch_control_page

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


async def at(answer: Answer, settings: dict[str, object] | None = None) -> object:
    """Return what is fetched from a server that gives *answer*."""
    runner = web.ServerRunner(web.Server(answer), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        given = ControlClientSettings(url=f"http://127.0.0.1:{port}/", **(settings or {}))
        return await fetch_control_page(given, PAGE)
    finally:
        await runner.cleanup()


def saying(status: int = 200, text: str = "", headers: dict[str, str] | None = None) -> Answer:
    """Return an answer."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        assert request.path == PAGE
        return web.Response(status=status, text=text, headers=headers)

    return answer


async def test_a_page_is_returned() -> None:
    """A slash at the end of the URL does no harm."""
    assert await at(saying(text='{"items": []}')) == {"items": []}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (saying(404, "404 page not found\n"), "HTTP status 404: '404 page not found'"),
        (saying(401, "unauthorized"), "HTTP status 401: 'unauthorized'"),
        (saying(302, "", {"Location": "/"}), "HTTP status 302: ''"),
        (saying(500, "\x1b[31m" + "x" * 300), "HTTP status 500: '\\x1b[31mxxx"),
        (saying(200, "<html>"), "the answer is no JSON"),
        (saying(200, "[" * 100_000), "the answer is no JSON"),
    ],
)
async def test_another_answer_is_told(answer: Answer, reason: str) -> None:
    """With its status, and the beginning of its text, safe for a terminal."""
    with pytest.raises(ControlPageError) as error:
        await at(answer)
    assert error.value.reason.startswith(reason)
    assert len(error.value.reason) < 300
    assert error.value.reason.isprintable()


async def test_an_answer_is_bounded() -> None:
    """Nobody fills the memory of whoever asks."""
    with pytest.raises(ControlPageError, match="an answer of more than 1024 bytes"):
        await at(saying(text=" " * 2_000), {"answer_bytes_max": 1_024})


async def test_a_silent_server_is_given_up() -> None:
    """After as long as was said."""

    async def silence(_request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(ControlPageError, match=r"no answer within 0\.05 s"):
        await at(silence, {"timeout_ns": 50 * NS_PER_MS})


async def test_a_server_that_hangs_up() -> None:
    """It is a reason like any other."""

    async def hang_up(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    with pytest.raises(ControlPageError) as error:
        await at(hang_up)
    assert "no answer" not in error.value.reason
    assert error.value.reason


@pytest.mark.parametrize("text", ["[]", "{}", '{"items": {}}', '{"items": [1]}'])
async def test_something_else_in_json(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a list of objects is what was asked for."""
    found = await at(saying(text=text))

    async def fetched(_settings: ControlClientSettings, _path: str) -> object:
        return found

    monkeypatch.setattr("inferencecache.app.get.fetch_control_page", fetched)
    with pytest.raises(ControlPageError, match="no list of objects"):
        await asyncio.to_thread(ask_server, ControlClientSettings())


@pytest.mark.parametrize(
    ("content", "allowed"),
    [(b"", "a file with one token"), (b"a\nb", "a file with one token"), (b"\xff", "no ASCII")],
)
async def test_a_token_file_holds_one_token(tmp_path: Path, content: bytes, allowed: str) -> None:
    """Anything else would be a header of somebody else's making."""
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=allowed):
        await fetch_control_page(ControlClientSettings(token_file=str(path)), PAGE)


@pytest.mark.parametrize("member", ["ca_file", "cert_file"])
async def test_files_of_another_form(tmp_path: Path, member: str) -> None:
    """They are named, with what is wrong."""
    path = tmp_path / "file.pem"
    path.write_text("no certificate")
    given = {member: str(path)} | ({"key_file": str(path)} if member == "cert_file" else {})
    settings = ControlClientSettings(url="https://127.0.0.1:9", **given)
    with pytest.raises(ConfigError, match="a readable PEM file"):
        await fetch_control_page(settings, PAGE)
