"""Ending the connections of one listener, and of no other."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from inferencecache.settings.address import BindAddress
from inferencecache.transport import open_sockets
from inferencecache.transport.open_sockets import end_connections


@contextmanager
def connected(host: str, port: int = 0) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Listen on *host* and connect once; give the listener and the client's end."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((host, port)))
        client = stack.enter_context(socket.create_connection(listener.getsockname()[:2]))
        stack.enter_context(listener.accept()[0])
        client.settimeout(10)
        yield listener, client


def at(listener: socket.socket, host: str) -> BindAddress:
    """Return the listener's address as a setting would have it."""
    return BindAddress(host=host, port=listener.getsockname()[1])


def is_open(client: socket.socket) -> bool:
    """Return whether the connection goes on."""
    client.settimeout(0)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True


@pytest.mark.parametrize("host", ["127.0.0.1", "", "localhost", "0.0.0.0"])  # noqa: S104 - as a setting
def test_connections_end_and_the_listener_stays(host: str) -> None:
    """However the setting names the interface."""
    with connected("127.0.0.1") as (listener, client):
        assert end_connections(at(listener, host)) == 1
        assert client.recv(1) == b""
        with socket.create_connection(listener.getsockname()[:2]):
            listener.accept()[0].close()


def test_the_listener_may_end_too() -> None:
    """Nobody gets in any more."""
    with connected("127.0.0.1") as (listener, client):
        assert end_connections(at(listener, "127.0.0.1"), with_listener=True) == 1
        assert client.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(listener.getsockname()[:2])


def test_other_listeners_keep_theirs() -> None:
    """Neither another port nor another address with the same port is touched."""
    with (
        connected("127.0.0.1") as (listener, client),
        connected("127.0.0.1") as (_, other_port),
        connected("127.0.0.2", listener.getsockname()[1]) as (_, other_host),
    ):
        assert end_connections(at(listener, "127.0.0.1")) == 1
        assert client.recv(1) == b""
        assert is_open(other_port)
        assert is_open(other_host)


def test_connections_of_both_ip_versions_are_found() -> None:
    """A listener on every interface sees IPv4 clients at mapped addresses."""
    if not socket.has_dualstack_ipv6():
        pytest.skip("needs IPv6")
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client, listener.accept()[0]:
            assert end_connections(BindAddress(host="127.0.0.1", port=port)) == 1
            assert client.recv(1) == b""


async def test_what_is_no_socket_is_left_alone() -> None:
    """Pipes, files and the event loop's own descriptors are none of its business."""
    with connected("127.0.0.1") as (listener, _client):
        await asyncio.to_thread(end_connections, at(listener, "127.0.0.1"))
    assert await asyncio.to_thread(lambda: "alive") == "alive"


def test_a_system_that_does_not_show_its_files_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The caller learns that there was nothing."""
    monkeypatch.setattr(open_sockets, "_DESCRIPTORS", "/nowhere")
    with connected("127.0.0.1") as (listener, client):
        assert end_connections(at(listener, "127.0.0.1")) == 0
        assert is_open(client)
