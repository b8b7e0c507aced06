"""Files of backends while they change: the last good state counts, and nothing of them is told."""

from pathlib import Path

import pytest
from resource_texts import document, load

from inferencecache.transport.gateway_backends import Backends, UnresolvedBackendError
from inferencecache.transport.system_clock import SystemClock


def backends(directory: Path | str, spec: str) -> tuple[Backends, list[tuple[str, str]]]:
    """Return one backend, and what is complained of it."""
    complaints: list[tuple[str, str]] = []
    found = Backends(
        str(directory), SystemClock(), lambda name, reason: complaints.append((name, reason))
    )
    put(found, spec)
    return found, complaints


def put(found: Backends, spec: str, name: str = "b") -> None:
    """Put a backend into force, in the place of all others."""
    text = document("GatewayBackend", name, f"{{{spec}}}", namespace="n")
    state = load({"b.yaml": text.replace("inferencecache.io", "gateway.linkerd.io")})
    assert not state.errors
    for _ in found.apply_slices(state):
        pass


KEYED = "baseURL: 'http://a', auth: {secretFile: k}"


async def key(found: Backends) -> str:
    """Return what the provider is shown."""
    resolved = await found.resolve("n", "b")
    assert resolved.auth is not None
    return resolved.auth[1]


async def test_the_last_good_key_stays_until_better_comes(tmp_path: Path) -> None:
    """Each bad state is complained of once."""
    file = tmp_path / "k"
    found, complaints = backends(tmp_path, KEYED)
    with pytest.raises(UnresolvedBackendError, match="k cannot be read: No such file"):
        await found.resolve("n", "b")
    file.write_text("  first \n")
    assert await key(found) == "Bearer first"
    for content in ("", "two\nlines", "s\u00e9cret", "a\x00b"):
        file.write_text(content)
        for _ in range(2):
            assert await key(found) == "Bearer first"
    file.unlink()
    assert await key(found) == "Bearer first"
    file.write_text("second")
    assert await key(found) == "Bearer second"
    assert [name for name, _ in complaints] == ["n/b"] * 6
    assert "cret" not in repr(complaints)
    assert "second" not in repr(await found.resolve("n", "b"))


async def test_an_object_that_did_not_change_keeps_its_files(tmp_path: Path) -> None:
    """A reload of others does not bring a lost key back into the dark."""
    (tmp_path / "k").write_text("first")
    found, _ = backends(tmp_path, KEYED)
    assert await key(found) == "Bearer first"
    (tmp_path / "k").unlink()
    put(found, KEYED)
    assert await key(found) == "Bearer first"
    put(found, KEYED.replace("http://a", "http://b"))
    with pytest.raises(UnresolvedBackendError):
        await found.resolve("n", "b")
    put(found, KEYED, name="other")
    with pytest.raises(UnresolvedBackendError, match="there is no GatewayBackend n/b"):
        await found.resolve("n", "b")
    assert len(found) == 1


@pytest.mark.parametrize(
    "spec",
    [
        "tls: {caFile: bad}",
        "tls: {caFile: missing}",
        "tls: {certFile: bad, keyFile: bad}",
        "tls: {}, auth: {secretFile: missing}",
        "tls: {caFile: directory}",
        "tls: {caFile: empty}",
    ],
)
async def test_files_that_cannot_be_used_leave_a_backend_unresolved(
    tmp_path: Path, spec: str
) -> None:
    """The reason quotes nothing of them."""
    (tmp_path / "bad").write_text("-----BEGIN CERTIFICATE-----\nquoted\n")
    (tmp_path / "directory").mkdir()
    (tmp_path / "empty").touch()
    found, complaints = backends(tmp_path, f"baseURL: 'https://a', {spec}")
    with pytest.raises(UnresolvedBackendError) as caught:
        await found.resolve("n", "b")
    assert "quoted" not in str(caught.value)
    assert len(complaints) == 1


async def test_without_a_directory_no_file_is_read() -> None:
    """A name could lead anywhere."""
    found, _ = backends("", KEYED)
    with pytest.raises(UnresolvedBackendError, match="--secrets"):
        await found.resolve("n", "b")
    found, _ = backends("", "baseURL: 'https://a', tls: {serverName: b}")
    resolved = await found.resolve("n", "b")
    assert (resolved.auth, resolved.server_name) == (None, "b")
    assert resolved.tls is not None
    assert resolved.tls.check_hostname
