"""Blocks of texts that begin like earlier ones: agents send their whole history each time.

Theory of operation
-------------------
A tokenizer takes its special tokens out of a text before it looks at anything else, so the tokens
of a text are those of its pieces, one after the other, if each piece begins with a special token.
Those beginnings are the marks of a text. Of each text that was tokenized its block hashes are
kept, and for each mark its name and how many tokens stand before it. A name is a keyed digest of
everything before the mark: two texts with a name in common have the same tokens up to there.

A text is then tokenized from a mark on: the last one that is known, or one before it, because no
tokens are kept. Hashes go on at the first block that does not end before what is new, and that
block must begin behind the place where tokenizing begins.

Example, blocks of 4 tokens: marks with 0, 9 and 21 tokens before them are known, and the text
differs only behind the last. Tokenized is from 9 on; the blocks up to 20 are known, block 20 to 24
is the first that is hashed anew, and 20 lies behind 9.

Where a template goes on from what it wrote for a shorter conversation, that need not be written
again. A text is then found by the name of all turns that it was made of, as they stand in a body;
of each mark it is known in which turn it stands. The longer text is written from a turn with a mark
on, and the marks behind that have to have the names that they had.

Rules of this file: marks depend on what stands before them only, or they would not be found again.
"""

import struct
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from typing import Final, NamedTuple

from inferencecache.fingerprint import (
    KEY_BYTES,
    TOKEN_BYTES,
    packed_prefix_hashes,
    packed_tokens,
    wire_bytes,
)
from inferencecache.picker.prompt.blocks import PromptBlocks

Encode = Callable[[list[str]], list[list[int]]]
"""Returns the token ids of each of several texts."""

_TEXT_BYTES: Final = 400
_MARK_BYTES: Final = 300
"""Of the objects and places in tables that a text, or a mark, takes."""

_LATEST: Final = 2
"""A text whose last marks but so many are in a newer one is not needed beside it."""


@dataclass(frozen=True, slots=True)
class KnownText:
    """What is kept of a text.

    Attributes:
        hashes: Of its whole blocks.
        names: Of its marks, in order; the first is its beginning.
        tokens: How many stand before each mark.
        characters: Of all of it, or more.
        turns: For each mark the number of the turn in whose text it stands, that of none at the end
            of the last one; 0 in the first turn, and where a longer text may be another one.
        offsets: How many characters of that turn stand before it.
        beginning: Name of all its turns as they stand in a body; empty if it is not to be found by
            that.
    """

    hashes: bytes
    names: tuple[bytes, ...]
    tokens: tuple[int, ...]
    characters: int = 0
    turns: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()
    beginning: bytes = b""

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return len(self.hashes) + _TEXT_BYTES + _MARK_BYTES * len(self.names)


class Found(NamedTuple):
    """A mark that was met before.

    Attributes:
        text: In which text.
        number: Which of its marks it is.
    """

    text: KnownText
    number: int


class Known(NamedTuple):
    """What is known of a text before it is tokenized.

    Attributes:
        names: Of its marks.
        former: The last of them that was met before.
    """

    names: Sequence[bytes]
    former: Found


NOTHING_KNOWN: Final = Found(KnownText(b"", (b"",), (0,)), 0)


class Histories:
    """Texts that were tokenized; those unused for longest go first.

    Args:
        bytes_max: Most bytes of all; 0 keeps none.

    Attributes:
        used_bytes: Of all texts.
    """

    __slots__ = ("_beginnings", "_bytes_max", "_marks", "_texts", "used_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._marks: dict[bytes, KnownText] = {}
        self._beginnings: dict[bytes, KnownText] = {}
        self._texts: OrderedDict[int, KnownText] = OrderedDict()
        self.used_bytes = 0

    def __len__(self) -> int:
        return len(self._texts)

    def find(self, names: Sequence[bytes]) -> Found:
        """Return the last of the marks with these names that is known; changes nothing."""
        for name in reversed(names):
            text = self._marks.get(name)
            if text is not None:
                return Found(text, text.names.index(name))
        return NOTHING_KNOWN

    def find_beginning(self, names: Sequence[bytes]) -> KnownText | None:
        """Return the text of the last of the beginnings with these names that is known."""
        for name in reversed(names):
            found = self._beginnings.get(name)
            if found is not None:
                return found
        return None

    def keep(self, text: KnownText, former: Found) -> None:
        """Remember *text*, in place of the one that it goes on from if it is all in it.

        Args:
            text: What was tokenized.
            former: Where tokenizing it began.
        """
        if id(former.text) in self._texts:
            self._texts.move_to_end(id(former.text))
        if len(text.names) > 1:  # without a mark nobody would find it
            self._texts[id(text)] = text
            self.used_bytes += text.size
            self._marks.update(dict.fromkeys(text.names[1:], text))
            if text.beginning:
                self._beginnings[text.beginning] = text
        if former.number >= len(former.text.names) - _LATEST:
            self._drop(former.text)  # after its names have gone to the newer one
        while self.used_bytes > self._bytes_max:
            self._drop(next(iter(self._texts.values())))

    def _drop(self, text: KnownText) -> None:
        if self._texts.pop(id(text), None) is None:
            return
        self.used_bytes -= text.size
        for name in text.names:
            if self._marks.get(name) is text:
                del self._marks[name]
        if self._beginnings.get(text.beginning) is text:
            del self._beginnings[text.beginning]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """The blocks of a text, and what is to be kept of it.

    Attributes:
        blocks: Of its tokens.
        text: To be kept.
        former: Where tokenizing it began.
    """

    blocks: PromptBlocks
    text: KnownText
    former: Found


class TextNames:
    """Names the beginnings of texts.

    Args:
        key: Random bytes of this process.
        context: Everything that changes blocks beside the text: tokenizer and block size.
    """

    __slots__ = ("_first",)

    def __init__(self, key: bytes, context: bytes) -> None:
        self._first = sha256(key + struct.pack("<Q", len(context)) + context).digest()

    def names_of(self, pieces: Sequence[str]) -> tuple[bytes, ...]:
        """Return a name for the beginning of each piece: for all that stands before it."""
        return further_names(self._first, pieces)


def further_names(first: bytes, pieces: Sequence[str]) -> tuple[bytes, ...]:
    """Return a name for the beginning of each piece; *first* is that of the first one."""
    return tuple(accumulate(pieces[:-1], _name_behind, initial=first))


def _name_behind(name: bytes, piece: str) -> bytes:
    digest = sha256(piece.encode("utf-8", "surrogatepass"))
    digest.update(name)  # as long for each, so no two texts run into one another
    return digest.digest()


def text_blocks(
    pieces: Sequence[str], names: Sequence[bytes], former: Found, encode: Encode, block_tokens: int
) -> Learned:
    """Return the blocks of a text.

    Args:
        pieces: All of it, each piece but the first beginning with a special token.
        names: Of their beginnings.
        former: The last of them that is known.
        encode: Tokenizes pieces.
        block_tokens: Tokens per block, >= 1.

    Complexity: O(n) in what is tokenized, and in the blocks.
    """
    start = _start(former, block_tokens)
    return blocks_from(start, pieces[start:], Known(names, former), encode, block_tokens)


def blocks_from(
    start: int, pieces: Sequence[str], known: Known, encode: Encode, block_tokens: int
) -> Learned:
    """Return the blocks of a text of which the pieces from a mark on are given.

    Args:
        start: Number of the mark; a block begins between it and what is new.
        pieces: Behind that mark.
        known: What is known of the text.
        encode: Tokenizes pieces.
        block_tokens: Tokens per block, >= 1.
    """
    names, former = known
    before = former.text.tokens[: start + 1]
    encoded = encode(list(pieces))
    counts = list(accumulate(map(len, encoded), initial=before[-1]))
    first = former.text.tokens[former.number] // block_tokens
    kept = memoryview(former.text.hashes)[: first * KEY_BYTES]
    parent = int.from_bytes(kept[-KEY_BYTES:], "big") if first else None
    behind = (first * block_tokens - before[-1]) * TOKEN_BYTES
    further = packed_prefix_hashes(packed_tokens(encoded)[behind:], block_tokens, parent)
    hashes = b"".join((kept, wire_bytes(further)))
    return Learned(
        blocks=PromptBlocks(
            hashes=hashes, block_tokens=block_tokens, prompt_tokens=counts[-1], is_exact=True
        ),
        text=KnownText(hashes, tuple(names), (*before[:-1], *counts[:-1])),
        former=former,
    )


def _start(former: Found, block_tokens: int) -> int:
    """Return the last mark from which the first whole block lies in what is known."""
    tokens = former.text.tokens
    until = tokens[former.number]
    for number in range(former.number, 0, -1):
        if -(-tokens[number] // block_tokens) * block_tokens <= until:
            return number
    return 0
