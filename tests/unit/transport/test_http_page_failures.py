"""What becomes of a page that raises, over real sockets and aiohttp as it is installed."""

import aiohttp
import pytest
from aiohttp import web
from both_loops import on_both_loops

from inferencecache.settings.http import HttpSettings
from inferencecache.transport.http_connections import HttpServer


async def lost(request: web.BaseRequest) -> web.StreamResponse:
    """End the connection and say so."""
    assert request.transport is not None
    request.transport.abort()
    raise ConnectionResetError


async def let_down(_request: web.BaseRequest) -> web.StreamResponse:
    """Lose somebody else."""
    raise ConnectionResetError


@on_both_loops
async def test_only_a_page_that_lost_its_peer_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """There is nobody to answer then; a peer that is there is told, and so is the log."""
    for page, is_told in ((lost, False), (let_down, True)):
        server = HttpServer("test", page, HttpSettings(bind_address="127.0.0.1:0"))
        address = await server.start()
        try:
            async with aiohttp.ClientSession() as client:
                asking = client.post(f"http://127.0.0.1:{address.port}/", data=b"a")
                if is_told:
                    assert (await asking).status == 500
                else:
                    with pytest.raises(aiohttp.ServerDisconnectedError):
                        await asking
        finally:
            await server.stop()
        told = [record.levelname for record in caplog.records]
        assert told == (["ERROR"] if is_told else [])
