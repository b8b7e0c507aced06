"""Bearer tokens that are known by their SHA-256, from a file that may change at any time.

A line of the file is a hash in hexadecimal; what follows it on the line, separated by white space,
is for people, as is everything after ``#``. So ``sha256sum`` writes lines that can be used. The
hashes need no salt: tokens are random, and nobody can list all of 256 bits.
"""

import hmac
import re
from collections.abc import Callable
from typing import Final

from inferencecache.clock import Clock
from inferencecache.errors import InferenceCacheError
from inferencecache.transport.file_refusals import FileRefusals
from inferencecache.transport.file_watch import FileWatch
from inferencecache.transport.read_file import read_plain_file

_DIGEST: Final = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_FILE_BYTES_MAX: Final = 1_048_576


class TokenFileError(InferenceCacheError):
    """A token file cannot be used; says where, and never what stands there.

    Args:
        reason: What is wrong.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TokenFile:
    """The tokens of one file; the last good ones stay when the file goes bad or goes away.

    Args:
        path: The file.
        clock: The time of day.
        complain: Told why a change was refused, once per state of the file.

    Raises:
        TokenFileError: There are no tokens to start with.

    Attributes:
        reloads: Changes taken over since the start.
        failures: Changes that were refused.
    """

    def __init__(self, path: str, clock: Clock, complain: Callable[[str], None]) -> None:
        self._path = path
        self._watch = FileWatch((path,), clock)
        self._refusals = FileRefusals((path,), _FILE_BYTES_MAX, complain)
        self.reloads = 0
        self.failures = 0
        self._watch.take_change()
        self._digests = _load(path)
        if not self._digests:
            raise TokenFileError(f"{path} names no token")

    def knows(self, digest: bytes) -> bool:
        """Tell whether a token with this SHA-256 is accepted.

        Takes the same time wherever, and whether, it stands in the file.
        """
        if self._watch.take_change():
            self._reload()
        matches = [hmac.compare_digest(digest, known) for known in self._digests]
        return any(matches)

    def _reload(self) -> None:
        self._refusals.see()
        try:
            digests = _load(self._path)
        except TokenFileError as error:
            self.failures += self._refusals.has_told(error.reason)
            return
        self._refusals.forget()
        if digests != self._digests:
            self._digests = digests
            self.reloads += 1


def _load(path: str) -> tuple[bytes, ...]:
    try:
        content = read_plain_file(path, _FILE_BYTES_MAX)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise TokenFileError(f"{path} cannot be read: {reason}") from error
    if not content.strip():
        raise TokenFileError(
            f"{path} is empty and names no token; to take every token away, leave a comment in it"
        )
    digests = []
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if not _DIGEST.fullmatch(words[0]):
            raise TokenFileError(
                f"{path}, line {number}: expected a SHA-256, 64 hexadecimal digits"
            )
        digests.append(bytes.fromhex(words[0]))
    return tuple(digests)
