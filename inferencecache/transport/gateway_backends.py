"""GatewayBackend objects as they can be used: address, key, TLS, as their files say now.

Rules of this file: a key is never logged, shown or part of an error. Files are looked at in a
thread, whenever a request needs them. The last good state of a backend's files stays until better
comes; a backend whose files were never good cannot be resolved.
"""

import asyncio
import re
import ssl
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from inferencecache.clock import Clock
from inferencecache.errors import InferenceCacheError
from inferencecache.resources import (
    GATEWAY_BACKEND,
    GatewayBackendSpec,
    LoadState,
    ObjectKey,
    auth_header_of,
)
from inferencecache.transport.file_refusals import FileRefusals
from inferencecache.transport.file_watch import FileWatch
from inferencecache.transport.read_file import read_plain_file
from inferencecache.transport.tls_trust import trusting

_FILE_BYTES_MAX: Final = 4_194_304
_KEY: Final = re.compile(rb"[\x21-\x7e]+(?: [\x21-\x7e]+)*")
_SLICE_OBJECTS: Final = 250

Complain = Callable[[str, str], None]
"""Told the backend and what is wrong with its files."""


class UnresolvedBackendError(InferenceCacheError):
    """A backend is not there, or cannot be used.

    Args:
        reason: Why; nothing of a file's content.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedBackend:
    """What a request to a backend needs.

    Attributes:
        base_url: Where it is.
        auth: Name and value of the header with the key, if there is one.
        tls: What the connection is made with; None takes the machine's authorities.
        server_name: In the certificate; None takes the host.
    """

    base_url: str
    auth: tuple[str, str] | None = field(repr=False)
    tls: ssl.SSLContext | None
    server_name: str | None


class Backends:
    """The backends in force.

    Args:
        directory: Below which files are named; empty allows none.
        clock: The time of day.
        complain: Told of each state of files that cannot be used.
    """

    def __init__(self, directory: str, clock: Clock, complain: Complain) -> None:
        self._directory = directory
        self._clock = clock
        self._complain = complain
        self._files: dict[ObjectKey, _BackendFiles] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._files)

    def apply_slices(self, load: LoadState) -> Generator[None, None, None]:
        """Put the backends of *load* in the place of all earlier ones; unchanged ones stay."""
        fresh: dict[ObjectKey, _BackendFiles] = {}
        for count, found in enumerate(load.of_kind(GATEWAY_BACKEND.kind)):
            if count % _SLICE_OBJECTS == _SLICE_OBJECTS - 1:
                yield
            spec = cast("GatewayBackendSpec", found.spec)
            known = self._files.get(found.key)
            fresh[found.key] = (
                known if known is not None and known.spec == spec else self._new(found.key, spec)
            )
        self._files = fresh

    async def resolve(self, namespace: str, name: str) -> ResolvedBackend:
        """Return what a request to a backend needs, as its files say now.

        Raises:
            UnresolvedBackendError: It is not there, or its files were never good.
        """
        files = self._files.get(ObjectKey(GATEWAY_BACKEND.kind, namespace, name))
        if files is None:
            raise UnresolvedBackendError(f"there is no {GATEWAY_BACKEND.kind} {namespace}/{name}")
        async with files.looking:
            await asyncio.to_thread(files.look)
        return files.current()

    def _new(self, key: ObjectKey, spec: GatewayBackendSpec) -> "_BackendFiles":
        def complain(reason: str) -> None:
            self._complain(f"{key.namespace}/{key.name}", reason)

        return _BackendFiles(spec, self._directory, self._clock, complain)


class _BackendFiles:
    """One backend with what is in its files.

    Args:
        spec: The object.
        directory: Where the files are.
        clock: The time of day.
        complain: Told of each state that cannot be used.
    """

    def __init__(
        self,
        spec: GatewayBackendSpec,
        directory: str,
        clock: Clock,
        complain: Callable[[str], None],
    ) -> None:
        self.spec = spec
        self.looking = asyncio.Lock()
        self._directory = directory
        paths = [self._path(name) for name in _file_names(spec)]
        self._watch = FileWatch(paths, clock)
        self._refusals = FileRefusals(paths, _FILE_BYTES_MAX, complain)
        self._contents: dict[str, bytes] | None = None
        self._resolved: ResolvedBackend | None = None
        self._problem = ""

    def current(self) -> ResolvedBackend:
        """Return the last good state.

        Raises:
            UnresolvedBackendError: There was none.
        """
        if self._resolved is None:
            raise UnresolvedBackendError(self._problem)
        return self._resolved

    def look(self) -> None:
        """Take over what has changed, if it is good; one look at a time, and it blocks."""
        if not self._watch.take_change():
            return
        self._refusals.see()
        try:
            contents = {name: self._read(name) for name in _file_names(self.spec)}
            if contents != self._contents:
                self._resolved = self._made(contents)
                self._contents = contents
        except UnresolvedBackendError as error:
            self._problem = error.reason
            self._refusals.has_told(error.reason)
        else:
            self._refusals.forget()

    def _made(self, contents: dict[str, bytes]) -> ResolvedBackend:
        auth, tls = self.spec.auth, self.spec.tls
        header = None
        if auth is not None:
            name, start = auth_header_of(auth)
            header = (name, start + _key_of(auth.secret_file, contents[auth.secret_file]))
        return ResolvedBackend(
            base_url=self.spec.base_url,
            auth=header,
            tls=None if tls is None else self._context(contents),
            server_name=None if tls is None else tls.server_name,
        )

    def _context(self, contents: dict[str, bytes]) -> ssl.SSLContext:
        """Return what connections are made with; the other side is always checked."""
        tls = self.spec.tls
        context = ssl.create_default_context()
        if tls is None:
            return context
        try:
            if tls.ca_file is not None:
                context = trusting(contents[tls.ca_file])
            if tls.cert_file is not None and tls.key_file is not None:
                cert_path, key_path = self._path(tls.cert_file), self._path(tls.key_file)
                context.load_cert_chain(cert_path, key_path, password=_no_password)
        except (OSError, ValueError) as error:
            raise UnresolvedBackendError(f"its TLS files cannot be used: {_words(error)}") from None
        return context

    def _path(self, name: str) -> str:
        return str(Path(self._directory) / name)

    def _read(self, name: str) -> bytes:
        if not self._directory:
            raise UnresolvedBackendError("the gateway was given no --secrets directory")
        try:
            return read_plain_file(self._path(name), _FILE_BYTES_MAX)
        except (OSError, ValueError) as error:
            raise UnresolvedBackendError(f"{name} cannot be read: {_words(error)}") from None


def _file_names(spec: GatewayBackendSpec) -> list[str]:
    """Return the files of a backend, each once."""
    auth, tls = spec.auth, spec.tls
    named = [None if auth is None else auth.secret_file]
    if tls is not None:
        named += [tls.ca_file, tls.cert_file, tls.key_file]
    return list(dict.fromkeys(filter(None, named)))


def _key_of(name: str, content: bytes) -> str:
    """Return the key in a file, without the white space around it."""
    key = content.strip()
    if not _KEY.fullmatch(key):
        raise UnresolvedBackendError(f"{name} holds no key: expected one line of printable ASCII")
    return key.decode("ascii")


def _no_password() -> str:
    """Answer instead of the terminal; keys that need one are refused."""
    return ""


def _words(error: OSError | ValueError) -> str:
    """Return what the library said; it never quotes the file."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or "not PEM").lower().replace("_", " ")
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "not usable"
