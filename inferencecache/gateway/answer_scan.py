"""Read along with an answer while it is passed on: its tokens, its model, its chunks.

Rules of this file: nothing is held back, changed or waited for. What is remembered is bounded,
whatever arrives: a line of a stream that is longer than that is passed over, of a document only the
end is looked at, where APIs put the usage. So is the work: of many usages in that end the last few
count.
"""

import re
from collections import deque
from json import JSONDecoder
from typing import Final

import msgspec

from inferencecache.gateway.answer_facts import AnswerFacts

_STREAM: Final = "text/event-stream"
_DOCUMENT: Final = "application/json"
_BLANK: Final = (b"", b"\r")
_CHOICES: Final = b'"choices"'
_DATA: Final = b"data:"
_EVENT: Final = b"event:"
_DONE: Final = b"[DONE]"
_EVENT_CHARS_MAX: Final = 128
_DELTA: Final = b"delta"
_NO_TOKENS: Final = b"message_delta"
"""An event of Anthropic's that tells of the end, in spite of its name."""

_READER: Final = msgspec.json.Decoder(float_hook=float)
"""By itself it takes 20 microseconds for a number above 1e284; an answer may be full of them."""

_PREFIX_READER: Final = JSONDecoder()
"""Reads what stands at the beginning of a text, whatever follows it."""

_USAGE: Final = re.compile(rb'(?<!\\)"usage"\s*:\s*(?=\{)')
_USAGES_MAX: Final = 4
_USAGE_BYTES_MAX: Final = 4_096


class AnswerScan:
    """Reads along with one answer.

    Args:
        content_type: Of the answer.
        bytes_max: Most bytes that are remembered.

    Attributes:
        facts: What the answer has said.
        chunks: Pieces of the answer that carry tokens, in a stream.
    """

    __slots__ = (
        "_bytes_max",
        "_event",
        "_is_document",
        "_is_skipping",
        "_is_stream",
        "_rest",
        "_was_cut",
        "chunks",
        "facts",
    )

    def __init__(self, content_type: str, bytes_max: int) -> None:
        kind = content_type.partition(";")[0].strip().lower()
        self._is_stream = kind == _STREAM
        self._is_document = kind == _DOCUMENT
        self._bytes_max = bytes_max
        self._rest = bytearray()
        self._is_skipping = False
        self._was_cut = False
        self._event = b""
        self.facts = AnswerFacts()
        self.chunks = 0

    def feed(self, data: bytes) -> None:
        """Take in what has arrived.

        Complexity: O(bytes of *data*), beside the documents in it that tell of usage or model.
        """
        if self._is_stream:
            self._feed_lines(data)
        elif self._is_document:
            self._rest += data
            if len(self._rest) > 2 * self._bytes_max:
                del self._rest[: len(self._rest) - self._bytes_max]
                self._was_cut = True

    def finish(self) -> AnswerFacts:
        """Return what the answer has said, now that it is over."""
        if self._is_stream:
            self._line(bytes(self._rest))
        elif self._is_document:
            self._document(bytes(self._rest))
        self._rest.clear()
        return self.facts

    def _feed_lines(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            if line not in _BLANK or self._rest or self._is_skipping:
                self._end_line(line)
            else:
                self._event = b""
        if self._is_skipping or len(self._rest) + len(rest) > self._bytes_max:
            self._is_skipping = True
            self._rest.clear()
        else:
            self._rest += rest

    def _end_line(self, end: bytes) -> None:
        if self._is_skipping or len(self._rest) + len(end) > self._bytes_max:
            self.chunks += self._is_delta  # so much of it can only be data
        else:
            self._line((bytes(self._rest) + end).rstrip(b"\r"))
        self._rest.clear()
        self._is_skipping = False

    @property
    def _is_delta(self) -> bool:
        """Whether data that comes now carries tokens, as far as the name of its event tells."""
        return not self._event or (self._event.endswith(_DELTA) and self._event != _NO_TOKENS)

    def _line(self, line: bytes) -> None:
        if line.startswith(_DATA):
            self._data(line[len(_DATA) :].strip())
        elif line.startswith(_EVENT):
            self._event = line[len(_EVENT) :].strip()[:_EVENT_CHARS_MAX]
        elif not line:
            self._event = b""

    def _data(self, data: bytes) -> None:
        if data == _DONE or not data:
            return
        carries_tokens = self._is_delta and (bool(self._event) or _CHOICES in data)
        if b'"usage"' in data or (not self.facts.model and b'"model"' in data):
            document = _decoded(data)
            self.facts.learn(document)
            if isinstance(document, dict) and document.get("choices") == []:
                carries_tokens = False
        self.chunks += carries_tokens

    def _document(self, data: bytes) -> None:
        if not self._was_cut:
            self.facts.learn(_decoded(data))
            return
        for found in deque(_USAGE.finditer(data), maxlen=_USAGES_MAX):
            end = found.end() + _USAGE_BYTES_MAX
            self.facts.learn({"usage": _decoded_prefix(data[found.end() : end])})


def _decoded(data: bytes) -> object:
    """Return the document, None if it is none."""
    try:
        return _READER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _decoded_prefix(data: bytes) -> object:
    """Return the document at the beginning of *data*, None if there is none that ends there."""
    try:
        return _PREFIX_READER.raw_decode(data.decode("utf-8", "replace"))[0]
    except (ValueError, RecursionError):
        return None
