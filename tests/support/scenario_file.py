"""Scenario files: one JSON scenario per line, plain or gzipped."""

import gzip
from collections.abc import Iterator
from pathlib import Path


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file that hold something, one scenario each.

    Raises:
        OSError: It cannot be read, or is not what its name says.
        EOFError: It ends too early.
        zlib.error: It is damaged.
    """
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    for line in content.splitlines():
        if line.strip():
            yield line
