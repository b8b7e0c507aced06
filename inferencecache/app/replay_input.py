"""Where a replay's prompts come from: a file, or the trace shipped with the package."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import islice
from pathlib import Path
from typing import Final

from inferencecache.errors import ConfigError
from inferencecache.simulation import Prompt, parse_trace, prompt_of

SHIPPED_TRACE: Final = "mooncake_conversation_1000.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayInput:
    """A trace, checked and ready to play.

    Attributes:
        name: File name of the trace.
        prompts: Its prompts, in order of arrival, at least one.
    """

    name: str
    prompts: Sequence[Prompt]


def load_trace(path: Path | None, requests_max: int) -> ReplayInput:
    """Read a trace before anything is started, so that a bad line costs nothing else.

    Args:
        path: The file, or None for the shipped trace.
        requests_max: Read only the first so many requests; 0 reads all.

    Raises:
        ConfigError: The file cannot be read, a line is wrong, or there is no request.
    """
    file: Traversable = (
        path or resources.files("inferencecache.simulation") / "data" / SHIPPED_TRACE
    )
    try:
        with file.open("rb") as lines:
            requests = islice(parse_trace(lines, file.name), requests_max or None)
            prompts = [prompt_of(request) for request in requests]
    except OSError as error:
        allowed = f"a readable file ({error.strerror})"
        raise ConfigError(field="TRACE", value=str(file), allowed=allowed) from error
    if not prompts:
        raise ConfigError(field="TRACE", value=str(file), allowed="at least one request")
    return ReplayInput(name=file.name, prompts=prompts)
