"""Scenario files: one JSON scenario per line, plain or gzipped."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def scenarios_of(path: Path) -> Iterator[Json]:
    """Yield the scenarios of a file in order."""
    opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open()
    with opened as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)
