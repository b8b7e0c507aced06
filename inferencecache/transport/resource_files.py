"""Read a directory of resource files as one consistent picture.

Rules of this file
    1. ``read`` blocks; it runs in a thread.
    2. A picture counts only if nothing has moved while it was taken: every file is looked at
       before and after, by its inode, size and times behind all symbolic links. That is what makes
       a directory whole whose links are switched to another version in between, as Kubernetes does
       with a mounted ConfigMap.
    3. A file whose look has not changed is not read again, unless its last change is so young that
       a further one could have the same timestamp.

Which files: those directly in the directory whose name ends in ``.yaml``, ``.yml`` or ``.json`` and
does not begin with a dot, behind symbolic links too.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.resources import SourceFile
from inferencecache.settings.resources import ResourceSettings

SUFFIXES: Final = (".yaml", ".yml", ".json")

_ATTEMPTS: Final = 5
_SETTLED_NS: Final = 2 * NS_PER_S
"""How old a change must be for its timestamp to tell it from the next; some file systems count
whole seconds, or two."""


class DirectoryError(Exception):
    """The directory gives no picture; what it gave before stays.

    Args:
        reason: Why, in a few words.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Look(NamedTuple):
    """What tells a file from its next version."""

    device: int
    inode: int
    bytes: int
    modified_ns: int
    changed_ns: int
    mode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A file as it was read."""

    look: _Look
    source: SourceFile
    is_settled: bool


class ResourceFiles:
    """The files of one directory.

    Args:
        settings: The directory, and what is too much.
        clock: Tells young changes from old ones.
    """

    def __init__(self, settings: ResourceSettings, clock: Clock) -> None:
        self._settings = settings
        self._directory = Path(settings.directory)
        self._clock = clock
        self._kept: dict[str, _Kept] = {}

    def read(self) -> tuple[SourceFile, ...]:
        """Return every file, sorted by name; one that cannot be read says why.

        Raises:
            DirectoryError: The directory is not there, cannot be read, holds too much, or does not
                hold still.
        """
        for _ in range(_ATTEMPTS):
            looks = self._looks()
            kept = self._read_all(looks)
            if kept is not None and self._looks() == looks:
                self._kept = kept
                return tuple(kept[name].source for name in sorted(kept))
        raise DirectoryError("the files change faster than they can be read")

    def _looks(self) -> dict[str, _Look]:
        """Look at every resource file."""
        looks: dict[str, _Look] = {}
        try:
            with os.scandir(self._directory) as entries:
                for entry in entries:
                    if _is_resource(entry.name):
                        self._look(entry, looks)
        except OSError as error:
            raise DirectoryError(_reason(error)) from error
        if len(looks) > self._settings.files_max:
            raise DirectoryError(f"more than {self._settings.files_max} resource files")
        if sum(look.bytes for look in looks.values()) > self._settings.total_bytes_max:
            raise DirectoryError(f"more than {self._settings.total_bytes_max} bytes in all")
        return looks

    def _look(self, entry: os.DirEntry[str], looks: dict[str, _Look]) -> None:
        """Look at one file; a directory is passed over, a link to nothing is no file yet."""
        try:
            found = entry.stat()
        except FileNotFoundError:
            looks[entry.name] = _Look(0, 0, 0, 0, 0, 0)
            return
        if not stat.S_ISDIR(found.st_mode):
            looks[entry.name] = _Look(
                found.st_dev,
                found.st_ino,
                found.st_size if stat.S_ISREG(found.st_mode) else 0,
                found.st_mtime_ns,
                found.st_ctime_ns,
                found.st_mode,
            )

    def _read_all(self, looks: dict[str, _Look]) -> dict[str, _Kept] | None:
        """Return every file, read only where needed; None if one has changed since."""
        kept: dict[str, _Kept] = {}
        young_ns = self._clock.now_ns() - _SETTLED_NS
        for name, look in looks.items():
            known = self._kept.get(name)
            if known is not None and known.look == look and known.is_settled:
                kept[name] = known
                continue
            source = self._read_one(name, look)
            if not source.problem and len(source.content) != look.bytes:
                return None
            if known is not None and known.source == source:
                source = known.source
            is_settled = max(look.modified_ns, look.changed_ns) < young_ns
            kept[name] = _Kept(look=look, source=source, is_settled=is_settled)
        return kept

    def _read_one(self, name: str, look: _Look) -> SourceFile:
        """Return a file's content, or why there is none."""
        if not stat.S_ISREG(look.mode):
            problem = "a special file" if look.mode else "a link to nothing"
            return SourceFile(name=name, content=b"", problem=problem)
        if look.bytes > self._settings.file_bytes_max:
            problem = f"more than {self._settings.file_bytes_max} bytes"
            return SourceFile(name=name, content=b"", problem=problem)
        try:
            content = _content(f"{self._settings.directory}/{name}", look.bytes)
        except OSError as error:
            return SourceFile(name=name, content=b"", problem=_reason(error))
        return SourceFile(name=name, content=content)


def _content(path: str, bytes_expected: int) -> bytes:
    """Return what is in a file, and one byte more than expected if there is."""
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        content = os.read(opened, bytes_expected + 1)
        while len(content) <= bytes_expected and (more := os.read(opened, bytes_expected)):
            content += more
    finally:
        os.close(opened)
    return content


def _is_resource(name: str) -> bool:
    """Tell whether a file of this name is meant for us."""
    return name.endswith(SUFFIXES) and not name.startswith(".")


def _reason(error: OSError) -> str:
    """Return what the system has to say, without the path."""
    return error.strerror or type(error).__name__
