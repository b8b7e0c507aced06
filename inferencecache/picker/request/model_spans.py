"""Where the top-level ``model`` values of a document stand.

Rules of this file: the document is valid JSON and an object. In valid JSON a quote, the word and a
quote, followed by a colon, are a key unless a backslash stands before the first quote: inside a
string every quote has one, and where the first quote ends a string no word can follow.

Theory of operation: almost always the word is there once, and that is it; looking from the end is
the quicker way through a long text. Else, where few are allowed, a mark takes the place of each
key in a copy, and the open brackets at each mark are counted. A long value that is known to stand
behind its key holds no key of the top level, so it is left out first.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec import Raw

from inferencecache.picker.bodies import Span
from inferencecache.picker.request.bad_body import BadBodyError, BodyFlaw, LaboriousBodyError
from inferencecache.picker.request.structure import MARK, depths_of_marks
from inferencecache.picker.request.top_keys import top_keys

_SPACE: Final = rb"[ \t\n\r]*"
# What must not stand before a key is looked for behind its first bytes: the search then runs at
# the speed of memory.
_PLAIN_KEY: Final = re.compile(rb'"model"(?<!\\"model")' + _SPACE + b":" + _SPACE)
_ANY_KEY: Final = re.compile(
    rb'"(?<!\\")(?:m|\\u006[dD])(?:o|\\u006[fF])(?:d|\\u0064)(?:e|\\u0065)(?:l|\\u006[cC])"'
    + _SPACE
    + b":"
    + _SPACE
)
_ESCAPED_LETTER: Final = rb"\u006"
_TEXT_OR_NULL: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|null', re.DOTALL)
_WORD: Final = b'"model"'
_BACKSLASH: Final = 0x5C
_BEHIND_KEY: Final = re.compile(_SPACE + b":" + _SPACE)
_LEFT_OUT: Final = b"0"
"""Stands for a value that is left out."""

_SPANS_MAX: Final = 16
"""More ``model`` keys than this are no mistake, and each would be written anew."""


def place_of(data: bytes, name: bytes, value: Raw) -> Span | None:
    """Return where *value* stands; None where the first such key is another's.

    Args:
        data: A valid JSON object.
        name: A key with its quotes.
        value: An array, an object or a text, once the value of that key.
    """
    key = data.find(name)
    if key <= 0 or data[key - 1] == _BACKSLASH:
        return None
    behind = _BEHIND_KEY.match(data, key + len(name))
    if behind is None or not data.startswith(value, behind.end()):
        return None
    return Span(behind.end(), behind.end() + memoryview(value).nbytes)


def model_spans(
    data: bytes, keys_max: int | None = None, left_out: Span | None = None
) -> list[Span]:
    """Return the spans of all top-level ``model`` values, texts with their quotes, or null.

    Args:
        data: A valid JSON object with at least one of them.
        keys_max: Most ``model`` keys at any depth that may be looked at, None for any number.
        left_out: Where a value of any other key stands that need not be looked through.

    Raises:
        BadBodyError: One is neither a string nor null, or there are too many.
        LaboriousBodyError: There are more keys than may be looked at.
    """
    if left_out is None:
        return _spans_in(data, keys_max)
    start, end = left_out
    shorter = end - start - len(_LEFT_OUT)
    try:
        spans = _spans_in(data[:start] + _LEFT_OUT + data[end:], keys_max)
    except BadBodyError as error:
        at_byte = error.at_byte or 0
        raise BadBodyError(error.flaw, at_byte + (shorter if at_byte > start else 0)) from None
    return [
        Span(first + shorter, last + shorter) if first > start else Span(first, last)
        for first, last in spans
    ]


def _spans_in(data: bytes, keys_max: int | None) -> list[Span]:
    """Return the spans of all top-level ``model`` values in *data*.

    Raises:
        BadBodyError: One is neither a string nor null, or there are too many.
        LaboriousBodyError: There are more keys than may be looked at.
    """
    has_escapes = b"\\" in data and data.rfind(_ESCAPED_LETTER) >= 0
    pattern = _ANY_KEY if has_escapes else _PLAIN_KEY
    if not has_escapes and (only := data.find(_WORD)) == data.rfind(_WORD):
        key = pattern.match(data, only)
        return [_value_span(data, key.end())] if key else []
    spans: list[Span] = []
    keys = top_keys(data, pattern) if keys_max is None else _few_top_keys(data, pattern, keys_max)
    for key in keys:
        spans.append(_value_span(data, key.end()))
        if len(spans) > _SPANS_MAX:
            raise BadBodyError(BodyFlaw.MODEL_TOO_OFTEN, key.start())
    return spans


def _few_top_keys(
    data: bytes, pattern: re.Pattern[bytes], keys_max: int
) -> Iterator[re.Match[bytes]]:
    """Yield the keys of the top level; the quicker way where there are few in all.

    Raises:
        LaboriousBodyError: There are more than may be looked at.
    """
    keys = list(islice(pattern.finditer(data), keys_max + 1))
    if len(keys) > keys_max:
        raise LaboriousBodyError
    depths = depths_of_marks(pattern.sub(MARK, data))
    return (key for key, depth in zip(keys, depths, strict=True) if depth == 1)


def _value_span(data: bytes, start: int) -> Span:
    match = _TEXT_OR_NULL.match(data, start)
    if match is None:
        raise BadBodyError(BodyFlaw.MODEL_NOT_TEXT, start)
    return Span(start, match.end())
