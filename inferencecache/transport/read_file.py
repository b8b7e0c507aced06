"""Read a small file that somebody else puts there, whatever it has become.

Rules of this file: nothing waits, as for the writer of a pipe, and nothing is endless, as some
devices are. What is no plain file is refused.
"""

import os
import stat
from typing import Final

_NO_FILE: Final = "not a plain file"


def read_plain_file(path: str | os.PathLike[str], bytes_max: int) -> bytes:
    """Return what is in the file at *path*, symbolic links followed.

    Args:
        path: Where it is.
        bytes_max: Most bytes in it.

    Raises:
        OSError: It cannot be read, is no plain file, or is larger.
        ValueError: The path cannot be one.
    """
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(opened, "rb") as file:  # noqa: PTH123 - it is open already
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, _NO_FILE)
        content = file.read(bytes_max + 1) if status.st_size <= bytes_max else None
    if content is None or len(content) > bytes_max:
        raise OSError(0, f"larger than {bytes_max:,} bytes")
    return content
