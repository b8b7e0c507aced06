"""Only a whole is taken: certificate, key and authority that fit."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from certificates import Authority, replace_file
from cryptography.hazmat.primitives import serialization

from inferencecache.transport import tls_files
from inferencecache.transport.system_clock import SystemClock
from inferencecache.transport.tls_files import TlsFiles, TlsLoadError, TlsMaterial, TlsPaths, load


@pytest.fixture(scope="module")
def authority() -> Authority:
    """Return an authority."""
    return Authority()


def current(files: TlsFiles) -> TlsMaterial:
    """Look once, and return what is served with then."""
    files.look()
    return files.current


def paths(directory: Path, authority: Authority, *, with_ca: bool = False) -> TlsPaths:
    """Write a pair; return where it is."""
    cert_file, key_file = authority.server().write(directory)
    ca_file = str(authority.write(directory / "ca.pem")) if with_ca else ""
    return TlsPaths(cert_file=str(cert_file), key_file=str(key_file), client_ca_file=ca_file)


def test_a_rotated_pair_is_taken_at_the_next_look(tmp_path: Path, authority: Authority) -> None:
    """Nothing has to be told about it."""
    where = paths(tmp_path, authority)
    files = TlsFiles(where, SystemClock(), print)
    first = current(files)
    assert current(files) is first
    second = authority.server()
    second.write(tmp_path)
    assert current(files).certificate == second.certificate
    assert (files.reloads, files.failures) == (1, 0)


def test_half_a_rotation_waits_for_the_other_half(tmp_path: Path, authority: Authority) -> None:
    """A certificate without its key is refused once, the old pair stays, the whole is taken."""
    where = paths(tmp_path, authority)
    complaints: list[str] = []
    files = TlsFiles(where, SystemClock(), complaints.append)
    first, second = current(files), authority.server()
    replace_file(Path(where.cert_file), second.certificate)
    assert [current(files) for _ in range(3)] == [first] * 3
    assert len(complaints) == files.failures == 1
    assert "key values mismatch" in complaints[0]
    replace_file(Path(where.key_file), second.key)
    assert current(files).certificate == second.certificate


def test_every_bad_pair_is_refused_on_its_own(tmp_path: Path, authority: Authority) -> None:
    """Nine with one and the same mistake are nine; nobody's looking again makes a tenth."""
    where = paths(tmp_path, authority)
    complaints: list[str] = []
    files = TlsFiles(where, SystemClock(), complaints.append)
    first = files.current
    for count in range(1, 10):
        replace_file(Path(where.cert_file), authority.server().certificate)
        assert [current(files) for _ in range(3)] == [first] * 3
        assert files.failures == count
    Path(where.cert_file).touch()
    assert current(files) is first
    assert len(complaints) == files.failures == 9
    assert len(set(complaints)) == 1


def test_a_bad_file_that_comes_back_is_refused_again(tmp_path: Path, authority: Authority) -> None:
    """Between the two there was a good one."""
    where = paths(tmp_path, authority)
    complaints: list[str] = []
    files = TlsFiles(where, SystemClock(), complaints.append)
    good = files.current.key
    for content in (b"bad", good, b"bad", b"worse", b"bad"):
        replace_file(Path(where.key_file), content)
        files.look()
    assert len(complaints) == files.failures == 4
    assert files.reloads == 0


def test_what_cannot_be_read_is_refused_on_its_own_too(
    tmp_path: Path, authority: Authority
) -> None:
    """Two files that are too large to be read are two."""
    where = paths(tmp_path, authority)
    files = TlsFiles(where, SystemClock(), print)
    for count in range(1, 4):
        large = tmp_path / "large"
        large.touch()
        os.truncate(large, 4_194_305)
        large.replace(where.key_file)
        for _ in range(3):
            files.look()
        assert files.failures == count


def test_files_that_go_away_leave_the_old_pair(tmp_path: Path, authority: Authority) -> None:
    """A listener never loses what it serves with."""
    where = paths(tmp_path, authority)
    files = TlsFiles(where, SystemClock(), print)
    first = current(files)
    Path(where.key_file).unlink()
    assert current(files) is first
    Path(where.cert_file).unlink()
    assert current(files) is first


def test_an_authority_is_rotated_too(tmp_path: Path, authority: Authority) -> None:
    """Clients are checked against the newest."""
    where = paths(tmp_path, authority, with_ca=True)
    files = TlsFiles(where, SystemClock(), print)
    assert files.asks_clients
    other = Authority("another")
    other.write(Path(where.client_ca_file))
    assert current(files).client_ca == other.pem


def encrypted_key(authority: Authority) -> bytes:
    """Return a key that needs a password."""
    key = serialization.load_pem_private_key(authority.server().key, None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


@pytest.mark.parametrize("broken", ["cert_file", "key_file", "client_ca_file"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\n", None])
def test_what_is_no_pem_is_refused(
    tmp_path: Path, authority: Authority, broken: str, content: bytes | None
) -> None:
    """The reason names the file and shows nothing of it."""
    where = paths(tmp_path, authority, with_ca=True)
    path = Path(getattr(where, broken))
    if content is None:
        path.unlink()
    else:
        replace_file(path, content)
    with pytest.raises(TlsLoadError) as refused:
        load(where)
    assert str(path) in refused.value.reason


@pytest.mark.parametrize("empty", ["cert_file", "key_file", "client_ca_file"])
@pytest.mark.parametrize("content", [b"", b" \n\n"])
def test_an_empty_file_is_called_empty(
    tmp_path: Path, authority: Authority, empty: str, content: bytes
) -> None:
    """OpenSSL has no word for it."""
    where = paths(tmp_path, authority, with_ca=True)
    path = getattr(where, empty)
    replace_file(Path(path), content)
    with pytest.raises(TlsLoadError) as refused:
        load(where)
    assert refused.value.reason == f"{path} is empty"


@pytest.mark.parametrize(
    ("wrong", "content", "reason"),
    [
        ("cert_file", "hello", "{path} holds no certificate: expected PEM"),
        ("cert_file", "{key}", "{path} holds no certificate: expected PEM"),
        (
            "cert_file",
            "-----BEGIN CERTIFICATE-----\nMII",
            "{path} holds no certificate: expected PEM",
        ),
        ("key_file", "hello", "{path} holds no private key: expected PEM"),
        ("key_file", "{certificate}", "{path} holds no private key: expected PEM"),
        (
            "key_file",
            "-----BEGIN PRIVATE KEY-----\nMII",
            "{path} holds no private key: expected PEM",
        ),
        (
            "key_file",
            "-----BEGIN PRIVATE KEY-----\nMIIa\n-----END PRIVATE KEY-----\n",
            "{pair} are no certificate and its key: not readable as PEM",
        ),
        (
            "key_file",
            "{other}",
            "{pair} are no certificate and its key: key values mismatch",
        ),
        ("client_ca_file", "hello", "{path} holds no authority: not readable as PEM"),
        ("client_ca_file", "{key}", "{path} holds no authority: not readable as PEM"),
    ],
)
def test_the_reason_says_which_file_is_not_what(
    tmp_path: Path, authority: Authority, wrong: str, content: str, reason: str
) -> None:
    """Where OpenSSL only names a line of its own source."""
    where = paths(tmp_path, authority, with_ca=True)
    key, certificate = Path(where.key_file).read_text(), Path(where.cert_file).read_text()
    other, path = authority.server().key.decode(), getattr(where, wrong)
    put = content.format(key=key, certificate=certificate, other=other)
    replace_file(Path(path), put.encode())
    with pytest.raises(TlsLoadError) as refused:
        load(where)
    pair = f"{where.cert_file} and {where.key_file}"
    assert refused.value.reason == reason.format(path=path, pair=pair)


def test_a_key_with_a_password_is_refused_without_asking(
    tmp_path: Path, authority: Authority
) -> None:
    """A server has nobody to ask."""
    where = paths(tmp_path, authority)
    replace_file(Path(where.key_file), encrypted_key(authority))
    with pytest.raises(TlsLoadError) as refused:
        load(where)
    assert refused.value.reason == (
        f"{where.key_file} needs a password: expected a key without one"
    )


def test_secrets_do_not_show(tmp_path: Path, authority: Authority) -> None:
    """Neither in logs nor in tracebacks."""
    material = load(paths(tmp_path, authority))
    assert "PRIVATE" not in repr(material)


def test_files_that_change_while_they_are_read_are_left_for_later(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of what was read might be of the old pair."""
    where = paths(tmp_path, authority)
    reads = iter([authority.server().key, authority.server().key])
    read = tls_files._content

    def changing(path: str) -> bytes:
        return next(reads) if path == where.key_file else read(path)

    monkeypatch.setattr(tls_files, "_content", changing)
    with pytest.raises(TlsLoadError, match="change while they are read"):
        load(where)


def test_touched_files_are_no_rotation(tmp_path: Path, authority: Authority) -> None:
    """The same content under a new time stamp is not counted."""
    where = paths(tmp_path, authority)
    files = TlsFiles(where, SystemClock(), print)
    first = current(files)
    Path(where.cert_file).touch()
    assert current(files) is first
    assert files.reloads == 0


def test_bundles_may_carry_comments_in_any_language(tmp_path: Path, authority: Authority) -> None:
    """What stands around the certificates of a bundle is nobody's business."""
    where = paths(tmp_path, authority, with_ca=True)
    bundle = Path(where.client_ca_file)
    bundle.write_bytes("# Autorité de test\n".encode() + authority.pem)

    assert TlsFiles(where, SystemClock(), print).current.client_ca == bundle.read_bytes()


def test_only_authorities_that_go_away_are_told(tmp_path: Path, authority: Authority) -> None:
    """A new one beside the old, another order and other comments take nobody's access away."""
    where = paths(tmp_path, authority, with_ca=True)
    bundle, other = Path(where.client_ca_file), Authority("another")
    files = TlsFiles(where, SystemClock(), print)
    for together in (authority.pem + other.pem, other.pem + b"# comment\n" + authority.pem):
        replace_file(bundle, together)
        assert current(files).client_ca == together
    assert files.removals == 0
    replace_file(bundle, other.pem)
    assert current(files).client_ca == other.pem
    assert files.removals == 1


@pytest.mark.parametrize("label", [b"X509 CERTIFICATE", b"CERTIFICATE"])
def test_an_authority_that_goes_away_is_told_whatever_its_label(
    tmp_path: Path, authority: Authority, label: bytes
) -> None:
    """Both libraries take the old name of a certificate, so its bearers come in and must leave."""
    where = paths(tmp_path, authority, with_ca=True)
    bundle = Path(where.client_ca_file)
    other = Authority("another").pem.replace(b"CERTIFICATE", label)
    bundle.write_bytes(authority.pem + other)
    files = TlsFiles(where, SystemClock(), print)
    replace_file(bundle, authority.pem)
    assert current(files).client_ca == authority.pem
    assert files.removals == 1


def be_pipe(path: Path) -> None:
    """Be something that is open for reading only once somebody writes."""
    os.mkfifo(path)


def be_loop(path: Path) -> None:
    """Be a link that leads to itself."""
    path.symlink_to(path)


def be_endless(path: Path) -> None:
    """Be a device that never ends."""
    path.symlink_to("/dev/zero")


def be_empty(path: Path) -> None:
    """Be a file that somebody has only begun to write."""
    path.touch()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["cert_file", "key_file", "client_ca_file"])
@pytest.mark.parametrize("become", [Path.mkdir, be_pipe, be_loop, be_endless, be_empty])
def test_a_file_that_becomes_something_else_leaves_what_is_served(
    tmp_path: Path, authority: Authority, name: str, become: Callable[[Path], None]
) -> None:
    """And nobody waits for it."""
    where = paths(tmp_path, authority, with_ca=True)
    complaints: list[str] = []
    files = TlsFiles(where, SystemClock(), complaints.append)
    before = files.current
    path = Path(getattr(where, name))
    path.unlink()
    become(path)
    assert current(files) is before
    assert len(complaints) == files.failures == 1
    assert path.name in complaints[0]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", ["cert_file", "key_file", "client_ca_file"])
def test_a_half_written_file_is_not_taken(
    tmp_path: Path, authority: Authority, name: str, share: float
) -> None:
    """The whole is, once it is there."""
    where = paths(tmp_path, authority, with_ca=True)
    files = TlsFiles(where, SystemClock(), print)
    before = files.current
    path = Path(getattr(where, name))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    assert current(files) is before
    path.write_bytes(whole + b"# done\n")
    files.look()
    assert files.reloads == 1
