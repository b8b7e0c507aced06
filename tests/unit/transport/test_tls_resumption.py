"""Where clients show certificates, each connection is checked: no session goes on in another."""

import ssl
from pathlib import Path

import pytest
from certificates import Authority

from inferencecache.transport.system_clock import SystemClock
from inferencecache.transport.tls_files import TlsFiles, TlsPaths
from inferencecache.transport.tls_listeners import http_context


class Connection:
    """A client and a server that have shaken hands, without a socket between them."""

    def __init__(
        self, client: ssl.SSLContext, server: ssl.SSLContext, session: ssl.SSLSession | None = None
    ) -> None:
        to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client.wrap_bio(
            to_client, to_server, server_hostname="localhost", session=session
        )
        self.server = server.wrap_bio(to_server, to_client, server_side=True)
        for side in (self.client, self.server) * 3:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
        self.server.write(b"x")
        assert self.client.read() == b"x"  # tickets come before it


@pytest.mark.parametrize("with_authority", [False, True])
def test_whoever_is_checked_is_checked_each_time(tmp_path: Path, *, with_authority: bool) -> None:
    """Where nobody is, sessions may go on, which shows that the client would do it."""
    authority = Authority()
    cert_file, key_file = authority.server().write(tmp_path)
    ca_file = authority.write(tmp_path / "ca.pem")
    files = TlsFiles(
        TlsPaths(
            cert_file=str(cert_file),
            key_file=str(key_file),
            client_ca_file=str(ca_file) if with_authority else "",
        ),
        SystemClock(),
        print,
    )
    server = http_context(files)
    client = authority.context(authority.client("c"), tmp_path)
    first = Connection(client, server)
    assert bool(first.server.getpeercert()) is with_authority
    session = first.client.session
    assert session is not None
    assert session.has_ticket is not with_authority
    second = Connection(client, server, session)
    assert second.server.session_reused is not with_authority


def test_whoever_is_checked_speaks_the_newest_version(tmp_path: Path) -> None:
    """Older ones have other ways to go on."""
    authority = Authority()
    cert_file, key_file = authority.server().write(tmp_path)
    ca_file = authority.write(tmp_path / "ca.pem")
    paths = TlsPaths(cert_file=str(cert_file), key_file=str(key_file), client_ca_file=str(ca_file))
    server = http_context(TlsFiles(paths, SystemClock(), print))
    client = authority.context()
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match=r"(?i)version|protocol"):
        Connection(client, server)
