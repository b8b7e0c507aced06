"""Who speaks another protocol than the port sees the words that the operations page explains."""

import asyncio
import re
import shutil
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pytest
from certificates import Authority
from controlled import Controlled, controlled

from inferencecache.settings.server import ServerSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.settings.tls import TlsSettings
from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1 import inferencecache_pb2_grpc as rpc

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"

needs_curl = pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")


def explained(start: str) -> set[str]:
    """Return the words in quotes of the rows that begin with *start*."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {start}")]
    return {words for row in rows for words in re.findall(r'"([^"]+)"', row.split(" | ")[0])}


def with_tls(directory: Path, authority: Authority) -> ServerSettings:
    """Return settings that secure both listeners and ask gRPC clients for certificates."""
    cert_file, key_file = map(str, authority.server().write(directory))
    client_ca_file = str(authority.write(directory / "clients.pem"))
    settings = throwaway_server_settings(
        tls=TlsSettings(cert_file=cert_file, key_file=key_file, client_ca_file=client_ca_file)
    )
    control = replace(settings.control, tls_cert_file=cert_file, tls_key_file=key_file)
    return replace(settings, control=control)


async def curl(control: Controlled, scheme: str) -> tuple[int | None, str]:
    """Ask for a page of the control listener by *scheme*; return exit code and words."""
    url = urlsplit(control.server.control_url)._replace(scheme=scheme, path="/snapshot").geturl()
    process = await asyncio.create_subprocess_exec(
        "curl",
        "--silent",
        "--show-error",
        "--insecure",
        url,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, words = await process.communicate()
    return process.returncode, words.decode()


async def call(target: str, credentials: grpc.ChannelCredentials | None) -> str:
    """Return the words with which a lookup fails."""
    connected = (
        grpc.aio.insecure_channel(target)
        if credentials is None
        else grpc.aio.secure_channel(target, credentials)
    )
    async with connected as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await rpc.InferenceCacheStub(channel).LookupRoute(pb.LookupRouteRequest())
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    return refused.value.details() or ""


@needs_curl
async def test_http_to_a_control_listener_that_speaks_tls(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is closed without an answer, and without a word in the log."""
    async with controlled(with_tls(tmp_path, Authority())) as control:
        before = list(control.log.lines)
        code, words = await curl(control, "http")
        assert (code, control.log.lines, caplog.records) == (52, before, [])
    (expected,) = explained("curl 52")
    assert expected in words


@needs_curl
async def test_https_to_a_control_listener_that_does_not(caplog: pytest.LogCaptureFixture) -> None:
    """Curl cannot make sense of the 400, and there is no word in the log."""
    async with controlled() as control:
        before = list(control.log.lines)
        code, words = await curl(control, "https")
        assert (code, control.log.lines, caplog.records) == (35, before, [])
    (expected,) = explained("curl 35")
    assert expected in words


async def test_tls_to_a_plaintext_grpc_port() -> None:
    """The client knows that it was no TLS."""
    async with controlled() as control:
        words = await call(control.server.grpc_target, Authority().channel_credentials())
    assert "WRONG_VERSION_NUMBER" in explained("gRPC `UNAVAILABLE`")
    assert "WRONG_VERSION_NUMBER" in words


async def test_what_a_secured_grpc_port_does_not_let_in(tmp_path: Path) -> None:
    """Plaintext, no certificate and a strange one look the same; a strange server does not."""
    authority, stranger = Authority(), Authority()
    known = explained("gRPC `UNAVAILABLE`")
    ended = {"Socket closed", "connection reset"}
    assert ended | {"CERTIFICATE_VERIFY_FAILED"} <= known
    unknown = stranger.client("a")
    strange = grpc.ssl_channel_credentials(authority.pem, unknown.key, unknown.certificate)
    async with controlled(with_tls(tmp_path, authority)) as control:
        target = control.server.grpc_target
        for credentials in (None, authority.channel_credentials(), strange):
            words = await call(target, credentials)
            assert any(end.lower() in words.lower() for end in ended), words
        words = await call(target, stranger.channel_credentials(authority.client("a")))
        assert "CERTIFICATE_VERIFY_FAILED" in words
