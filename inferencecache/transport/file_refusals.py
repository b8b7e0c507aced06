"""Tell once of each state of some files that was refused, however often they are looked at.

Rules of this file: what counts is what stands in the files. The same mistake in another file is
another refusal; a bad file under a new time stamp is the one that was told of before.
"""

import hashlib
from collections.abc import Callable, Sequence

from inferencecache.transport.file_watch import Stamp, stamp_of
from inferencecache.transport.read_file import read_plain_file

_Part = bytes | Stamp


class FileRefusals:
    """Remembers which state was told of last.

    Args:
        paths: The files, which are judged together.
        file_bytes_max: More than that is not read of one.
        complain: Told why they were refused.
    """

    __slots__ = ("_complain", "_file_bytes_max", "_paths", "_seen", "_told")

    def __init__(
        self, paths: Sequence[str], file_bytes_max: int, complain: Callable[[str], None]
    ) -> None:
        self._paths = tuple(paths)
        self._file_bytes_max = file_bytes_max
        self._complain = complain
        self._seen: tuple[_Part, ...] = ()
        self._told: tuple[str, tuple[_Part, ...]] | None = None

    def see(self) -> None:
        """Take note of the files; to be called before they are judged, so that none is missed."""
        self._seen = tuple(self._part(path) for path in self._paths)

    def has_told(self, reason: str) -> bool:
        """Complain of what was seen, unless that was told last; return whether it was told now."""
        told = (reason, self._seen)
        if told == self._told:
            return False
        self._told = told
        self._complain(reason)
        return True

    def forget(self) -> None:
        """Take the files as good: the next refusal is told, whatever it is."""
        self._told = None

    def _part(self, path: str) -> _Part:
        """Return what tells one content from another, or what the file looks like without any."""
        try:
            return hashlib.sha256(read_plain_file(path, self._file_bytes_max)).digest()
        except (OSError, ValueError):
            return stamp_of(path)
