"""Where a replay's prompts come from: a file, or the trace shipped with the package."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import islice
from pathlib import Path
from typing import Final

from inferencecache.errors import ConfigError
from inferencecache.simulation import (
    Prompt,
    TraceBlock,
    TraceRequest,
    parse_trace,
    prompt_of,
    tokenize_trace,
)

SHIPPED_TRACE: Final = "mooncake_conversation_1000.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayInput:
    """A trace, checked and ready to play.

    Attributes:
        name: File name of the trace.
        prompts: Its prompts, in order of arrival, at least one.
        blocks: Every full block, by key; only of a trace read for engines.
    """

    name: str
    prompts: Sequence[Prompt]
    blocks: Mapping[bytes, TraceBlock] = field(default_factory=dict)


def load_trace(path: Path | None, requests_max: int, *, for_engines: bool = False) -> ReplayInput:
    """Read a trace before anything is started, so that a bad line costs nothing else.

    Args:
        path: The file, or None for the shipped trace.
        requests_max: Read only the first so many requests; 0 reads all.
        for_engines: Whether engines publish the prompts: then keys are made from tokens, and the
            content behind each key is kept.

    Raises:
        ConfigError: The file cannot be read, a line is wrong, or there is no request.
    """
    trace = read_trace(path, requests_max)
    if for_engines:
        return _tokenized(trace.requests, trace.name)
    return _keyed(trace.requests, trace.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTrace:
    """A trace as it is written.

    Attributes:
        name: File name, in characters that can be shown.
        requests: In order of arrival, at least one.
    """

    name: str
    requests: Sequence[TraceRequest]


def read_trace(path: Path | None, requests_max: int) -> ReadTrace:
    """Read and check a trace.

    Args:
        path: The file, or None for the shipped trace.
        requests_max: Read only the first so many requests; 0 reads all.

    Raises:
        ConfigError: The file cannot be read, a line is wrong, or there is no request.
    """
    file: Traversable = (
        path or resources.files("inferencecache.simulation") / "data" / SHIPPED_TRACE
    )
    name = _printable(file.name)
    try:
        with file.open("rb") as lines:
            requests = list(islice(parse_trace(lines, name), requests_max or None))
    except OSError as error:
        allowed = f"a readable file ({error.strerror})"
        raise ConfigError(field="TRACE", value=str(file), allowed=allowed) from error
    if not requests:
        raise ConfigError(field="TRACE", value=str(file), allowed="at least one request")
    return ReadTrace(name=name, requests=requests)


def _printable(name: str) -> str:
    """Return the name of a file, which may be any bytes, so that tables and plots can show it."""
    return name if name.isprintable() else ascii(name)[1:-1]


def _keyed(requests: Iterable[TraceRequest], name: str) -> ReplayInput:
    return ReplayInput(name=name, prompts=[prompt_of(request) for request in requests])


def _tokenized(requests: Iterable[TraceRequest], name: str) -> ReplayInput:
    trace = tokenize_trace(requests)
    return ReplayInput(name=name, prompts=trace.prompts, blocks=trace.blocks)
