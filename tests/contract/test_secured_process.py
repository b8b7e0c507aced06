"""How a secured process starts, and the exit code that says whose fault it is if it does not."""

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest
from certificates import EXPIRED, NOT_YET, Authority, Dates
from odd_certificates import KINDS
from server_process import spawn

SA = "system:serviceaccount:cache:controller"
FREE = tuple(f"--{name}-bind-address=127.0.0.1:0" for name in ("grpc", "http", "snapshot"))


async def refusal(directory: Path, *arguments: str) -> tuple[int, str]:
    """Start a server that cannot start; return exit code and its only line."""
    server = await spawn(*FREE, *arguments, directory=str(directory))
    async with asyncio.timeout(60):
        code = await server.exited()
    assert len(server.lines) == 1, server.lines
    return code, server.lines[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "missing --allowed-controller-sa"),
        (
            ("--insecure-disable-auth", f"--allowed-controller-sa={SA}"),
            "mutually exclusive",
        ),
        (("--log-level=loud",), "--log-level"),
        ((f"--allowed-controller-sa={SA} ",), "whitespace"),
        ((f"--allowed-controller-sa={SA}", "--policy-audience= "), "--policy-audience"),
        (("--insecure-disable-auth", "--tls-cert-file=c.pem"), "--tls-key-file"),
        (("--insecure-disable-auth", "--tls-client-ca-file=c.pem"), "--tls-cert-file"),
        (("--insecure-disable-auth", "--control-tls-key-file=k"), "--control-tls-cert-file"),
    ],
)
async def test_contradictory_settings_exit_with_2(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    """One line for people, before anything is opened."""
    code, line = await refusal(tmp_path, *arguments)
    assert code == 2
    assert line.startswith("inferencecache: error: ")
    assert words in line


@pytest.mark.parametrize(
    ("arguments", "event"),
    [
        ((f"--allowed-controller-sa={SA}",), "in_cluster_config"),
        # The cluster is looked for before the files are held together.
        ((f"--allowed-controller-sa={SA}", "--tls-cert-file=c.pem"), "in_cluster_config"),
        (
            ("--insecure-disable-auth", "--tls-cert-file=c.pem", "--tls-key-file=k.pem"),
            "grpc_tls_load",
        ),
        (
            (
                "--insecure-disable-auth",
                "--control-tls-cert-file=c.pem",
                "--control-tls-key-file=k.pem",
            ),
            "control_tls_load",
        ),
        (("--control-token-file=absent",), "control_token_load"),
    ],
)
async def test_what_is_not_there_exits_with_1(
    tmp_path: Path, arguments: tuple[str, ...], event: str
) -> None:
    """One event of the log, with a reason."""
    code, line = await refusal(tmp_path, *arguments)
    fields = json.loads(line)
    assert (code, fields["msg"], fields["level"]) == (1, event, "ERROR")
    assert fields["reason"]


async def test_an_authority_that_cannot_be_read_exits_with_1(tmp_path: Path) -> None:
    """A pod whose service account is broken says so."""
    (tmp_path / "token").write_text("t")
    server = await spawn(
        *FREE,
        f"--allowed-controller-sa={SA}",
        f"--service-account-dir={tmp_path}",
        directory=str(tmp_path),
        environ={"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"},
    )
    assert await server.exited() == 1
    assert server.events == ["kube_client"]


@pytest.mark.parametrize("listener", ["grpc", "control"])
@pytest.mark.parametrize("kind", ["secp256k1", "Ed25519", "P-521", "RSA that may not sign"])
async def test_a_pair_that_clients_cannot_use_exits_with_1(
    tmp_path: Path, listener: str, kind: str
) -> None:
    """The event says that it is the certificate, whichever listener it is for."""
    KINDS[kind]().write(tmp_path)
    prefix = "" if listener == "grpc" else "control-"
    code, line = await refusal(
        tmp_path,
        "--insecure-disable-auth",
        f"--{prefix}tls-cert-file=server.pem",
        f"--{prefix}tls-key-file=server.key",
    )
    fields = json.loads(line)
    assert (code, fields["msg"], fields["level"]) == (1, f"{listener}_tls_load", "ERROR")
    assert "server.pem" in fields["reason"]


@pytest.mark.parametrize("listener", ["grpc", "control"])
@pytest.mark.parametrize(
    ("dates", "words"), [(EXPIRED, "has expired"), (NOT_YET, "is not valid yet")]
)
async def test_a_pair_that_is_not_valid_now_exits_with_1(
    tmp_path: Path, listener: str, dates: Dates, words: str
) -> None:
    """No client would come in; the reason says when it was, or will be."""
    Authority().server(dates).write(tmp_path)
    prefix = "" if listener == "grpc" else "control-"
    code, line = await refusal(
        tmp_path,
        "--insecure-disable-auth",
        f"--{prefix}tls-cert-file=server.pem",
        f"--{prefix}tls-key-file=server.key",
    )
    fields = json.loads(line)
    assert (code, fields["msg"], fields["level"]) == (1, f"{listener}_tls_load", "ERROR")
    assert f"server.pem {words}" in fields["reason"]


async def statuses(page: str, authority: Authority, directory: Path) -> list[int]:
    """Return the answers to nobody, to a stranger, and to the right client."""
    found = []
    for client in (None, authority.client("stranger"), authority.client("controller")):
        context = authority.context(client, directory)
        async with aiohttp.ClientSession() as http, http.get(page, ssl=context) as reply:
            found.append(reply.status)
    return found


async def test_a_whole_set_of_files_starts(tmp_path: Path) -> None:
    """A secured process says what it expects, knows its clients, and takes rotated files."""
    authority = Authority()
    cert_file, key_file = authority.server().write(tmp_path)
    ca_file = authority.write(tmp_path / "ca.pem")
    server = await spawn(
        *FREE,
        "--tls-check-interval=50ms",
        f"--tls-cert-file={cert_file}",
        f"--tls-key-file={key_file}",
        f"--tls-client-ca-file={ca_file}",
        f"--control-tls-cert-file={cert_file}",
        f"--control-tls-key-file={key_file}",
        f"--control-tls-client-ca-file={ca_file}",
        "--control-client-names=cn:controller",
        directory=str(tmp_path),
    )
    try:
        startup = await server.read_until("startup")
        assert startup["grpc_tls"] is True
        assert {"version", "commit", "grpc_addr", "http_addr", "snapshot_addr"} <= set(startup)
        enabled = await server.read_until("controller_auth_enabled")
        assert enabled["client_names"] == "cn:controller"
        page = f"https://{startup['snapshot_addr']}/snapshot"
        assert await statuses(page, authority, tmp_path) == [401, 403, 200]
        other = Authority("another")
        other.server().write(tmp_path)
        other.write(ca_file)
        removed = await server.read_until("client_authority_removed")
        assert removed["listener"] in {"grpc", "control"}
        await server.read_until("client_authority_removed")
        assert await statuses(page, other, tmp_path) == [401, 403, 200]
        with pytest.raises(aiohttp.ClientError):
            await statuses(page, authority, tmp_path)
    finally:
        server.process.kill()
        await server.exited()
