"""Request traces in the Mooncake format: one JSON object per line, checked field by field.

::

    {"timestamp": 3000, "input_length": 1100, "output_length": 52, "hash_ids": [0, 7, 9]}

``timestamp`` is in milliseconds from the start and never goes back. A prompt is cut into blocks of
512 tokens and ``hash_ids`` names one per block, the last of which may be partial; equal ids mean
equal prefixes up to and including that block. Further fields are allowed and ignored.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

import msgspec

from inferencecache.errors import ConfigError
from inferencecache.types import INT32_MAX

TRACE_BLOCK_TOKENS: Final = 512
"""Tokens per block; the format fixes it."""

_HASH_ID_MAX: Final = 2**32 - 1
_TIMESTAMP_MS_MAX: Final = 2**53
_SHOWN_CHARACTERS_MAX: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """One request of a trace.

    Attributes:
        timestamp_ms: Arrival, milliseconds from the start of the trace, >= 0.
        input_length: Prompt tokens, >= 1.
        output_length: Generated tokens, >= 0; no replayed quantity depends on it.
        hash_ids: One id per block of the prompt, the partial last one included.
    """

    timestamp_ms: int
    input_length: int
    output_length: int
    hash_ids: tuple[int, ...]


def parse_trace(lines: Iterable[bytes], name: str) -> Iterator[TraceRequest]:
    """Yield the requests of a trace, in order.

    Args:
        lines: The file's lines; blank ones are skipped.
        name: What error messages call the file.

    Raises:
        ConfigError: At the first line that is wrong, naming line, field and value.
    """
    latest_ms = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        source = f"{name} line {number}"
        request = parse_request(line, source)
        if request.timestamp_ms < latest_ms:
            allowed = f"at least {latest_ms}, the time of the request before"
            raise _refuse("timestamp", request.timestamp_ms, allowed, source)
        latest_ms = request.timestamp_ms
        yield request


def parse_request(line: bytes, source: str) -> TraceRequest:
    """Read one line.

    Args:
        line: One JSON object, UTF-8.
        source: File and line, for the error message.

    Raises:
        ConfigError: The line is no object, or a field is missing, of another type, out of range,
            or at odds with the prompt length.
    """
    fields = _decode(line, source)
    input_length = _integer(fields, "input_length", (1, INT32_MAX), source)
    request = TraceRequest(
        timestamp_ms=_integer(fields, "timestamp", (0, _TIMESTAMP_MS_MAX), source),
        input_length=input_length,
        output_length=_integer(fields, "output_length", (0, INT32_MAX), source),
        hash_ids=_hash_ids(fields, source),
    )
    blocks = -(-input_length // TRACE_BLOCK_TOKENS)
    if len(request.hash_ids) != blocks:
        allowed = (
            f"{blocks}, one per started block of {TRACE_BLOCK_TOKENS} of {input_length} tokens"
        )
        raise _refuse("number of hash_ids", len(request.hash_ids), allowed, source)
    return request


def _decode(line: bytes, source: str) -> Mapping[str, object]:
    """Return the line's object."""
    try:
        decoded = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        allowed = f"one JSON object ({error})"
        raise _refuse("line", line.decode(errors="replace").strip(), allowed, source) from error
    if not isinstance(decoded, dict):
        raise _refuse("line", decoded, "one JSON object", source)
    return cast("Mapping[str, object]", decoded)


def _integer(fields: Mapping[str, object], name: str, bounds: tuple[int, int], source: str) -> int:
    """Return an integer field within *bounds*."""
    allowed = f"an integer from {bounds[0]} to {bounds[1]}"
    if name not in fields:
        raise _refuse(name, None, allowed, source)
    value = fields[name]
    if not _is_integer_within(value, bounds):
        raise _refuse(name, value, allowed, source)
    return cast("int", value)


def _hash_ids(fields: Mapping[str, object], source: str) -> tuple[int, ...]:
    """Return the block ids."""
    values = fields.get("hash_ids")
    if not isinstance(values, list):
        raise _refuse("hash_ids", values, "a list of integers", source)
    for position, value in enumerate(values):
        if not _is_integer_within(value, (0, _HASH_ID_MAX)):
            allowed = f"an integer from 0 to {_HASH_ID_MAX}"
            raise _refuse(f"hash_ids[{position}]", value, allowed, source)
    return tuple(values)


def _is_integer_within(value: object, bounds: tuple[int, int]) -> bool:
    """Return whether *value* is an integer, not a boolean, within *bounds*."""
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return bounds[0] <= value <= bounds[1]


def _refuse(field: str, value: object, allowed: str, source: str) -> ConfigError:
    """Return the error for one wrong field, its value shortened."""
    if isinstance(value, str | list | dict) and len(repr(value)) > _SHOWN_CHARACTERS_MAX:
        value = repr(value)[:_SHOWN_CHARACTERS_MAX] + "..."
    return ConfigError(field=field, value=value, allowed=allowed, source=source)
