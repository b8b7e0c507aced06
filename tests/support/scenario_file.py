"""Scenario files: one JSON scenario per line, plain or gzipped."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def scenarios_of(path: Path) -> Iterator[Json]:
    """Yield the scenarios of a file in order."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    for line in content.splitlines():
        if line.strip():
            yield json.loads(line)
