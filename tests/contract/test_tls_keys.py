"""Which certificates are taken: exactly those with which a real client of gRPC gets an answer."""

import asyncio
import shutil
import ssl
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from certificates import EXPIRED, NOT_YET, SHORTLY, Authority, Dates, Pair, replace_file
from controlled import Controlled, controlled
from odd_certificates import KINDS
from tls_clients import reaches, served_serial

from inferencecache.settings.auth import AuthSettings
from inferencecache.settings.control import ControlSettings
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.settings.tls import TlsSettings
from inferencecache.transport.grpc_port import GrpcPort
from inferencecache.transport.start_error import StartError
from inferencecache.transport.tls_leaf import is_usable
from inferencecache.transport.tls_trial import TrialError, grpc_takes

FREE = "127.0.0.1:0"
WORKING = {"P-256", "P-384", "RSA 2048", "RSA 4096", "RSA that may sign"}
NOT_LOADED = {"P-224", "P-256 that may not sign", "secp256k1", "brainpool", "Ed448", "DSA"}


def is_answered(certificate: bytes, key: bytes) -> bool:
    """Return whether a gRPC client that trusts the certificate gets through to a server with it."""
    server = grpc.server(ThreadPoolExecutor(1))
    try:
        port = server.add_secure_port(FREE, grpc.ssl_server_credentials([(key, certificate)]))
    except RuntimeError:
        return False
    server.start()
    with grpc.secure_channel(
        f"localhost:{port}", grpc.ssl_channel_credentials(certificate)
    ) as channel:
        try:
            channel.unary_unary("/no/method")(b"", timeout=30)
        except grpc.RpcError as error:
            return error.code() is grpc.StatusCode.UNIMPLEMENTED  # type: ignore[attr-defined] # a call
        finally:
            server.stop(None)
    raise AssertionError("there is no such method")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_taken_is_what_clients_can_use(kind: str) -> None:
    """The list of kinds is held against real handshakes."""
    pair = KINDS[kind]()
    assert is_usable(pair.certificate) == is_answered(pair.certificate, pair.key)
    assert is_usable(pair.certificate) == (kind in WORKING)


@pytest.mark.parametrize(
    "options",
    [
        ["rsa-pss", "-pkeyopt", "rsa_keygen_bits:2048"],
        [
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-pkeyopt",
            "ec_param_enc:explicit",
        ],
    ],
    ids=["RSA-PSS", "P-256 by its parameters"],
)
@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")
def test_what_only_openssl_makes_is_judged_alike(tmp_path: Path, options: list[str]) -> None:
    """Keys that look like the good ones and are not."""
    key_file, cert_file = tmp_path / "key", tmp_path / "cert"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    where = ["-keyout", str(key_file), "-out", str(cert_file)]
    command = ["openssl", "req", "-x509", "-nodes", *names, *where, "-newkey", *options]
    subprocess.run(command, check=True, capture_output=True)
    assert not is_usable(cert_file.read_bytes())
    assert not is_answered(cert_file.read_bytes(), key_file.read_bytes())


@pytest.mark.parametrize(
    "chain",
    [
        b"",
        b"no certificate",
        b"-----BEGIN CERTIFICATE----- -----END CERTIFICATE-----",
        b"-----BEGIN CERTIFICATE-----\n%%%%\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    ],
)
def test_what_only_looks_like_a_certificate_is_refused(chain: bytes) -> None:
    """It breaks nothing."""
    assert not is_usable(chain)


def test_a_damaged_certificate_breaks_nothing() -> None:
    """Whatever byte of it is another: some damage matters, some does not, none raises."""
    whole = ssl.PEM_cert_to_DER_cert(KINDS["P-256"]().certificate.decode())
    verdicts = Counter[bool]()
    for at in range(len(whole)):
        der = bytearray(whole)
        der[at] ^= 0xFF
        verdicts[is_usable(ssl.DER_cert_to_PEM_cert(bytes(der)).encode())] += 1
    assert verdicts.keys() == {True, False}


def test_the_core_can_be_asked() -> None:
    """A process of its own says what the library takes, and loads nothing of ours."""
    authority = Authority()
    pair, other = authority.server(), authority.server()
    assert grpc_takes(pair.certificate, pair.key, None)
    assert grpc_takes(pair.certificate, pair.key, authority.pem)
    assert not grpc_takes(pair.certificate, other.key, authority.pem)
    assert not grpc_takes(pair.certificate, pair.key, b"no authority")
    odd = KINDS["secp256k1"]()
    assert not grpc_takes(odd.certificate, odd.key, None)


def test_no_answer_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no process can be started, nobody knows."""
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(TrialError):
        grpc_takes(b"", b"", None)


@pytest.mark.parametrize("kind", sorted(NOT_LOADED))
async def test_a_port_with_a_bad_pair_does_not_blame_its_address(kind: str) -> None:
    """What the core does not take is a matter of the certificate."""
    pair = KINDS[kind]()
    credentials = grpc.ssl_server_credentials([(pair.key, pair.certificate)])
    with pytest.raises(StartError) as refused:
        await GrpcPort(GrpcSettings(bind_address=FREE), {}, credentials).start()
    assert refused.value.event == "grpc_tls_load"


class Rotated:
    """A server whose two secured listeners share one pair of files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = Authority()
        self.first = self.authority.server()
        files = [str(path) for path in self.first.write(directory)]
        cert_file, key_file = files
        tokens = directory / "tokens"
        tokens.write_text("0" * 64)
        self.settings = throwaway_server_settings(
            tls=TlsSettings(cert_file=cert_file, key_file=key_file),
            control=ControlSettings(
                bind_address=FREE, tls_cert_file=cert_file, tls_key_file=key_file
            ),
            auth=AuthSettings(token_file=str(tokens)),
        )

    def put(self, pair: Pair) -> None:
        """Replace certificate and key."""
        replace_file(self.directory / "server.pem", pair.certificate)
        replace_file(self.directory / "server.key", pair.key)


async def serials(control: Controlled) -> list[int]:
    """Return what new connections to both listeners are shown."""
    targets = (control.server.grpc_target, str(control.server.addresses.control))
    return list(await asyncio.gather(*map(served_serial, targets)))


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - WORKING))
async def test_a_pair_that_clients_cannot_use_is_refused_everywhere(
    tmp_path: Path, kind: str
) -> None:
    """Both listeners keep the old one, say so once, count it, and take the next good one."""
    rotated = Rotated(tmp_path)
    reloads = "inferencecache_tls_reloads_total"
    async with controlled(rotated.settings) as control:
        rotated.put(KINDS[kind]())
        for _ in range(2):
            await control.server.rotation.look()
        assert await serials(control) == [rotated.first.serial] * 2
        for listener in ("grpc", "control"):
            assert len(control.log.of(f"{listener}_tls_reload")) == 1
            assert await control.metric(reloads, listener=listener, result="refused") == 1
            assert await control.metric(reloads, listener=listener, result="taken") == 0
        good = rotated.authority.server()
        rotated.put(good)
        await control.server.rotation.look()
        assert await serials(control) == [good.serial] * 2


@pytest.mark.parametrize("dates", [EXPIRED, NOT_YET])
async def test_a_pair_that_is_not_valid_now_is_refused_everywhere(
    tmp_path: Path, dates: Dates
) -> None:
    """However many such pairs come, each is counted, and clients go on with the good one."""
    rotated = Rotated(tmp_path)
    authority, reloads = rotated.authority, "inferencecache_tls_reloads_total"
    async with controlled(rotated.settings) as control:
        for count in range(1, 4):
            rotated.put(authority.server(dates))
            for _ in range(2):
                await control.server.rotation.look()
            assert await serials(control) == [rotated.first.serial] * 2
            for listener in ("grpc", "control"):
                assert len(control.log.of(f"{listener}_tls_reload")) == count
                assert await control.metric(reloads, listener=listener, result="refused") == count
                assert await control.metric(reloads, listener=listener, result="taken") == 0
        assert await reaches(control.server.grpc_target, authority)
        assert (await control.ask("GET", "/snapshot", ssl=authority.context())).status == 401


async def test_the_end_of_what_is_served_is_shown(tmp_path: Path) -> None:
    """Of the pair that was taken last, not of the one that was refused."""
    rotated = Rotated(tmp_path)
    name = "inferencecache_tls_certificate_expiry_timestamp_seconds"
    async with controlled(rotated.settings) as control:
        for pair in (rotated.first, rotated.authority.server(SHORTLY)):
            rotated.put(pair)
            await control.server.rotation.look()
            rotated.put(rotated.authority.server(EXPIRED))
            await control.server.rotation.look()
            for listener in ("grpc", "control"):
                assert await control.metric(name, listener=listener) == pair.not_after_s
        assert SHORTLY[1].timestamp() - pair.not_after_s < 1


async def test_what_only_the_core_refuses_is_refused_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kind nobody has thought of is found by asking."""
    rotated = Rotated(tmp_path)
    monkeypatch.setattr("inferencecache.transport.tls_files.is_usable", lambda _chain: True)
    async with controlled(rotated.settings) as control:
        rotated.put(KINDS["secp256k1"]())
        await control.server.rotation.look()
        assert await serials(control) == [rotated.first.serial] * 2
        for listener in ("grpc", "control"):
            (fields,) = control.log.of(f"{listener}_tls_reload")
            assert "gRPC does not take" in str(fields["reason"])


async def test_a_question_without_an_answer_is_put_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is taken unseen, and nothing is forgotten."""
    rotated = Rotated(tmp_path)
    async with controlled(rotated.settings) as control:
        good = rotated.authority.server()
        rotated.put(good)
        with monkeypatch.context() as nowhere:
            nowhere.setattr("sys.executable", "/nowhere/python")
            for _ in range(3):
                await control.server.rotation.look()
        assert len(control.log.of("grpc_tls_reload")) == 1
        reloads = "inferencecache_tls_reloads_total"
        assert await control.metric(reloads, listener="grpc", result="refused") == 0
        assert await serials(control) == [rotated.first.serial] * 2
        await control.server.rotation.look()
        assert await serials(control) == [good.serial] * 2
