"""Bytes in pieces: what arrives in chunks is kept in chunks and leaves in chunks.

Rules of this file: a large chunk is kept as the object it came in. Small ones are gathered, because
a bytes object of its own costs more than their content: a body sent byte by byte would otherwise
take forty times the memory that it is charged for.

Example: ``Rope([b"ab", b"cdef"]).spliced([Span(1, 3)], b"XYZ")`` is ``a``, ``XYZ``, ``def``.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

Chunk = bytes | memoryview

_SMALL_BYTES: Final = 16 * 1_024
_GATHERED_BYTES: Final = 64 * 1_024


class Span(NamedTuple):
    """A range of bytes.

    Attributes:
        start: Offset of the first.
        end: Offset behind the last.
    """

    start: int
    end: int


class Rope:
    """A finished sequence of chunks; nothing in it changes.

    Args:
        chunks: The bytes in order.

    Attributes:
        length: How many bytes there are.
    """

    __slots__ = ("_chunks", "length")

    def __init__(self, chunks: Iterable[Chunk] = ()) -> None:
        self._chunks = tuple(chunk for chunk in chunks if chunk)
        self.length = sum(map(len, self._chunks))

    def join(self) -> bytes:
        """Return all bytes as one object; a copy unless there is only one chunk."""
        if len(self._chunks) == 1:
            return bytes(self._chunks[0])
        return b"".join(self._chunks)

    def pieces(self, bytes_max: int) -> Generator[Chunk, None, None]:
        """Yield the bytes in order, at most *bytes_max* at a time, none of them empty."""
        for chunk in self._chunks:
            if len(chunk) <= bytes_max:
                yield chunk
                continue
            view = memoryview(chunk)
            for start in range(0, len(view), bytes_max):
                yield view[start : start + bytes_max]

    def spliced(self, spans: Sequence[Span], replacement: bytes) -> "Rope":
        """Return the rope with *replacement* in place of each of *spans*.

        Args:
            spans: Ranges in rising order that do not overlap.
            replacement: What comes instead.
        """
        pieces: list[Chunk] = []
        start = 0
        for span in spans:
            pieces.extend(self._between(start, span.start))
            pieces.append(replacement)
            start = span.end
        pieces.extend(self._between(start, self.length))
        return Rope(pieces)

    def _between(self, start: int, end: int) -> Iterator[Chunk]:
        """Yield the bytes from *start* up to *end* without copying them."""
        offset = 0
        for chunk in self._chunks:
            first, last = max(start - offset, 0), min(end - offset, len(chunk))
            if first == 0 and last == len(chunk):
                yield chunk
            elif first < last:
                yield memoryview(chunk)[first:last]
            offset += len(chunk)
            if offset >= end:
                return


class RopeBuilder:
    """Gathers chunks.

    Attributes:
        length: Bytes so far.
    """

    __slots__ = ("_chunks", "_small", "length")

    def __init__(self) -> None:
        self._chunks: list[Chunk] = []
        self._small = bytearray()
        self.length = 0

    def append(self, chunk: Chunk) -> None:
        """Add *chunk* at the end."""
        self.length += len(chunk)
        if len(chunk) < _SMALL_BYTES:
            self._small += chunk
            if len(self._small) >= _GATHERED_BYTES:
                self._gather()
            return
        self._gather()
        self._chunks.append(chunk)

    def finish(self) -> Rope:
        """Return the whole; the builder is empty afterwards."""
        self._gather()
        rope = Rope(self._chunks)
        self._chunks = []
        self.length = 0
        return rope

    def _gather(self) -> None:
        if self._small:
            self._chunks.append(bytes(self._small))
            self._small = bytearray()
