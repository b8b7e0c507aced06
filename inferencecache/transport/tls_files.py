"""Certificate, key and client authority from files; the last good ones stay until better come.

Rules of this file:

1. Files are looked at again and again by somebody who may block. Connections take what was found
   last, as the event loop and the threads of the gRPC core, which ask, must not wait.
2. Only a whole is taken: the key fits the certificate, the authority can be read, and both TLS
   libraries of the process, Python's and gRPC's, can serve with it. Half of a rotation, certificate
   first and key a moment later, is refused and noticed again.
3. What no client accepts is not taken: a certificate that has expired or is not valid yet. As time
   may change that, such files are looked at again without having changed.
4. All listeners follow the same rule, so that they never end up with different ones of the same
   files.
"""

import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from inferencecache.clock import Clock
from inferencecache.errors import InferenceCacheError
from inferencecache.transport.file_refusals import FileRefusals
from inferencecache.transport.file_watch import FileWatch
from inferencecache.transport.read_file import read_plain_file
from inferencecache.transport.tls_leaf import USABLE, is_usable
from inferencecache.transport.tls_trial import TrialError, grpc_takes
from inferencecache.transport.tls_validity import Validity, validity_of

_FILE_BYTES_MAX: Final = 4_194_304
_CERTIFICATE: Final = re.compile(
    rb"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----(.*?)-----END", re.DOTALL
)
_KEY: Final = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END", re.DOTALL)


class TlsLoadError(InferenceCacheError):
    """The files of a listener make no usable whole.

    Args:
        reason: What is wrong with which file.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsPaths:
    """Where the files are.

    Attributes:
        cert_file: Certificate chain, PEM.
        key_file: Its private key, PEM.
        client_ca_file: Authorities of clients, PEM; empty asks clients for nothing.
    """

    cert_file: str
    key_file: str
    client_ca_file: str = ""

    def all(self) -> tuple[str, ...]:
        """Return those that are set."""
        return tuple(filter(None, (self.cert_file, self.key_file, self.client_ca_file)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TlsMaterial:
    """What was in the files at one moment.

    Attributes:
        certificate: Certificate chain, PEM.
        key: Private key, PEM.
        client_ca: Authorities of clients, PEM, or None.
        validity: When the certificate is valid.
        context: The same for Python's own TLS, with client certificates optional.
    """

    certificate: bytes
    key: bytes = field(repr=False)
    client_ca: bytes | None
    validity: Validity
    context: ssl.SSLContext = field(repr=False)


class TlsFiles:
    """The material of one listener, always the newest that is whole.

    Args:
        paths: Where the files are.
        clock: The time of day.
        complain: Told why a change was refused, once per state of the files.

    Raises:
        TlsLoadError: There is nothing usable to start with.

    Attributes:
        reloads: Changes taken over since the start.
        failures: Changes that were refused.
        removals: How many of the changes taken over have taken an authority of clients away.
    """

    def __init__(self, paths: TlsPaths, clock: Clock, complain: Callable[[str], None]) -> None:
        self._paths = paths
        self._clock = clock
        self._watch = FileWatch(paths.all(), clock)
        self._refusals = FileRefusals(paths.all(), _FILE_BYTES_MAX, complain)
        self.reloads = 0
        self.failures = 0
        self.removals = 0
        self._watch.take_change()
        self._material = load(paths)
        self._check_dates(self._material)

    @property
    def asks_clients(self) -> bool:
        """Whether clients are checked against an authority."""
        return bool(self._paths.client_ca_file)

    @property
    def current(self) -> TlsMaterial:
        """The newest whole material; may be asked for in any thread."""
        return self._material

    def look(self) -> None:
        """Take over what has changed, if it is whole; one look at a time, and it blocks."""
        if not self._watch.take_change():
            return
        self._refusals.see()
        try:
            material = self._load_other()
        except TlsLoadError as error:
            self.failures += self._refusals.has_told(error.reason)
        except TrialError as error:
            self._watch.forget()
            self._refusals.has_told(f"changed files cannot be tried, which is tried again: {error}")
        else:
            self._refusals.forget()
            if material is not None:
                self._take(material)

    def _load_other(self) -> TlsMaterial | None:
        """Return what is in the files, None if that is what is served already.

        A certificate that is served already stays anyway. What changes beside it, an authority of
        clients that is taken away for example, must not wait for its renewal.

        Raises:
            TlsLoadError: It is not usable.
            TrialError: Nobody knows whether it is usable.
        """
        material = load(self._paths)
        if _parts(material) == _parts(self._material):
            return None
        if material.certificate != self._material.certificate:
            self._check_dates(material)
        _try(material)
        return material

    def _check_dates(self, material: TlsMaterial) -> None:
        """Refuse a certificate that is not valid now, and see to it that it is asked for again.

        Raises:
            TlsLoadError: It is not.
        """
        objection = material.validity.objection(self._clock.now_ns())
        if objection:
            self._watch.forget()
            raise TlsLoadError(f"{self._paths.cert_file} {objection}")

    def _take(self, material: TlsMaterial) -> None:
        before, self._material = self._material, material
        self.reloads += 1
        if _authorities(before) - _authorities(material):
            self.removals += 1


def load(paths: TlsPaths) -> TlsMaterial:
    """Read and check the files.

    Raises:
        TlsLoadError: A file cannot be read, is not PEM, does not fit the others, or holds a kind
            of key that clients of gRPC cannot use.
    """
    before = _read(paths)
    certificate, key, client_ca = before
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(paths.cert_file, paths.key_file, password=_no_password)
    except (OSError, ValueError) as error:
        raise TlsLoadError(_why_no_pair(paths, certificate, key, error)) from error
    if not is_usable(certificate):
        raise TlsLoadError(f"clients of gRPC cannot use {paths.cert_file}: expected {USABLE}")
    validity = _validity(paths.cert_file, certificate)
    if client_ca is not None:
        _trust(context, paths.client_ca_file, client_ca)
    if _read(paths) != before:
        raise TlsLoadError(f"{paths.cert_file} and its companions change while they are read")
    return TlsMaterial(
        certificate=certificate,
        key=key,
        client_ca=client_ca,
        validity=validity,
        context=context,
    )


def _why_no_pair(
    paths: TlsPaths, certificate: bytes, key: bytes, error: OSError | ValueError
) -> str:
    """Say why OpenSSL does not take the pair; it has no word for what is no PEM, nor which file."""
    if not _CERTIFICATE.search(certificate):
        return f"{paths.cert_file} holds no certificate: expected PEM"
    if not _KEY.search(key):
        return f"{paths.key_file} holds no private key: expected PEM"
    if b"ENCRYPTED" in key:
        return f"{paths.key_file} needs a password: expected a key without one"
    pair = f"{paths.cert_file} and {paths.key_file}"
    return f"{pair} are no certificate and its key: {_words(error)}"


def _read(paths: TlsPaths) -> tuple[bytes, bytes, bytes | None]:
    client_ca = _content(paths.client_ca_file) if paths.client_ca_file else None
    return _content(paths.cert_file), _content(paths.key_file), client_ca


def _content(path: str) -> bytes:
    try:
        content = read_plain_file(path, _FILE_BYTES_MAX)
    except (OSError, ValueError) as error:
        raise TlsLoadError(f"{path} cannot be read: {_words(error)}") from error
    if not content.strip():
        raise TlsLoadError(f"{path} is empty")
    return content


def _validity(path: str, certificate: bytes) -> Validity:
    try:
        return validity_of(certificate)
    except ValueError as error:
        raise TlsLoadError(f"{path} does not say when it is valid") from error


def _trust(context: ssl.SSLContext, path: str, client_ca: bytes) -> None:
    """Let *context* check clients that show a certificate.

    A resumed session is not checked again, not even after its authority has gone. So there are
    none: no tickets, and only the TLS version that has no other way to resume.
    """
    try:
        # Bundles carry comments in any language; what counts is ASCII.
        context.load_verify_locations(cadata=client_ca.decode("ascii", "ignore"))
    except (OSError, ValueError) as error:
        raise TlsLoadError(f"{path} holds no authority: {_words(error)}") from error
    context.verify_mode = ssl.CERT_OPTIONAL
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0


def _try(material: TlsMaterial) -> None:
    """Refuse what the gRPC core does not take.

    Raises:
        TlsLoadError: It does not.
        TrialError: It cannot be asked now.
    """
    if not grpc_takes(material.certificate, material.key, material.client_ca):
        raise TlsLoadError("gRPC does not take this certificate, its key or the clients' authority")


def _authorities(material: TlsMaterial) -> frozenset[bytes]:
    """Return the authorities of clients, however they are ordered and broken into lines."""
    found = _CERTIFICATE.findall(material.client_ca or b"")
    return frozenset(b"".join(each.split()) for each in found)


def _no_password() -> str:
    """Answer instead of the terminal; keys that need one are refused."""
    return ""


def _parts(material: TlsMaterial) -> tuple[bytes, bytes, bytes | None]:
    return material.certificate, material.key, material.client_ca


def _words(error: OSError | ValueError) -> str:
    """Return what the library said; it never quotes the file."""
    if isinstance(error, ssl.SSLError):
        return error.reason.lower().replace("_", " ") if error.reason else "not readable as PEM"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__ if isinstance(error, UnicodeError) else str(error)
