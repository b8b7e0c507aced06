"""API keys of clients, known by their SHA-256, and whose they are; from a file that may change.

A line of the file is a hash in hexadecimal, white space, and a tenant; what follows, and all after
``#``, is for people. The hashes need no salt: keys are random, and nobody can list all of them.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Final

from inferencecache.clock import Clock
from inferencecache.errors import InferenceCacheError
from inferencecache.transport.file_refusals import FileRefusals
from inferencecache.transport.file_watch import FileWatch
from inferencecache.transport.read_file import read_plain_file

_DIGEST: Final = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_FILE_BYTES_MAX: Final = 4_194_304
_BEARER: Final = "bearer "
_OWN_HEADER: Final = "x-api-key"
"""Where clients of Anthropic's API put it."""


class KeyFileError(InferenceCacheError):
    """A file of keys cannot be used; says where, and never what stands there.

    Args:
        reason: What is wrong.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class KeyFile:
    """The keys of one file; the last good ones stay when the file goes bad or goes away.

    Args:
        path: The file.
        clock: The time of day.
        complain: Told why a change was refused, once per state of the file.

    Raises:
        KeyFileError: The file cannot be used to start with.
    """

    def __init__(self, path: str, clock: Clock, complain: Callable[[str], None]) -> None:
        self._path = path
        self._watch = FileWatch((path,), clock)
        self._refusals = FileRefusals((path,), _FILE_BYTES_MAX, complain)
        self._watch.take_change()
        self._tenants = _load(path)

    def tenant_of(self, headers: Mapping[str, str]) -> str | None:
        """Return whose key *headers* carry; None for none, or one that nobody has.

        What is looked up is a hash, so the time it takes says nothing of other keys.
        """
        if self._watch.take_change():
            self._reload()
        key = _key_in(headers)
        if not key:
            return None
        digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
        return self._tenants.get(digest)

    def _reload(self) -> None:
        self._refusals.see()
        try:
            self._tenants = _load(self._path)
        except KeyFileError as error:
            self._refusals.has_told(error.reason)
        else:
            self._refusals.forget()


def _key_in(headers: Mapping[str, str]) -> str:
    authorization = headers.get("authorization", "")
    if authorization[: len(_BEARER)].lower() == _BEARER:
        return authorization[len(_BEARER) :].strip()
    return headers.get(_OWN_HEADER, "").strip()


def _load(path: str) -> dict[bytes, str]:
    try:
        content = read_plain_file(path, _FILE_BYTES_MAX)
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise KeyFileError(f"{path} is no UTF-8") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise KeyFileError(f"{path} cannot be read: {reason}") from error
    if not content.strip():
        raise KeyFileError(
            f"{path} is empty and names no key; to take every key away, leave a comment in it"
        )
    tenants: dict[bytes, str] = {}
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if not _DIGEST.fullmatch(words[0]) or len(words) == 1:
            raise KeyFileError(
                f"{path}, line {number}: expected a SHA-256, 64 hexadecimal digits, and a tenant"
            )
        digest = bytes.fromhex(words[0])
        if tenants.setdefault(digest, words[1]) != words[1]:
            raise KeyFileError(f"{path}, line {number}: a key of two tenants")
    return tenants
