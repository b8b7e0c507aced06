"""Notice that files have changed, without a watcher: ask when they are about to be used.

Rules of this file: a change is never missed. A file that was changed just before it was read could
change again within the resolution of its time stamps, so until it has rested for a moment every
question about it is answered with "yes".
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from inferencecache.clock import NS_PER_S, Clock

_REST_NS: Final = NS_PER_S

Stamp = tuple[int, int, int, int, int] | None
_CHANGED: Final = 3
"""The part of a stamp that nobody can set to a time of his choice."""


class FileWatch:
    """Remembers what some files looked like.

    Args:
        paths: The files; symbolic links are followed, as Kubernetes swaps them.
        clock: The time of day, as file systems know it.
    """

    __slots__ = ("_clock", "_known", "_paths")

    def __init__(self, paths: Sequence[str], clock: Clock) -> None:
        self._paths = tuple(paths)
        self._clock = clock
        self._known: tuple[Stamp, ...] | None = None

    def take_change(self) -> bool:
        """Return whether the files may differ from those at the last call; true at the first.

        Whoever is told so reads them; what changes after this call is seen by the next.
        """
        stamps = tuple(stamp_of(path) for path in self._paths)
        if stamps == self._known:
            return False
        newest_ns = max((stamp[_CHANGED] for stamp in stamps if stamp is not None), default=0)
        has_rested = newest_ns + _REST_NS < self._clock.now_ns()
        self._known = stamps if has_rested else None
        return True

    def forget(self) -> None:
        """Let the next question be answered with "yes"."""
        self._known = None


def stamp_of(path: str) -> Stamp:
    """Return what tells one state of a file from another, None for no file."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return None
    return (
        status.st_dev,
        status.st_ino,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_size,
    )
