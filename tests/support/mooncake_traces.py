"""The two Mooncake traces, complete, for tests and benchmarks of whole fleets."""

import lzma
from functools import cache
from pathlib import Path

from inferencecache.simulation import TraceRequest, parse_trace

_DIRECTORY = Path(__file__).parents[1] / "data" / "traces"


@cache
def mooncake_trace(name: str) -> list[TraceRequest]:
    """Return all requests of the trace called *name*, ``conversation`` or ``synthetic``."""
    file = _DIRECTORY / f"mooncake_{name}.jsonl.xz"
    with lzma.open(file) as lines:
        return list(parse_trace(lines, file.name))
