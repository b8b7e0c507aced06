"""Texts of conversations that go on, of which only what is new is written.

A text is taken up at a mark, by writing the turn in which that stands, and all turns behind it.
What is written is compared with what was known of the text by the names of its marks: the last one
that every longer text has must be in it, and with the same name, so that both are the same from
where the text was taken up to there. All before that is the same since the turns are, and the
template goes from one to the next.

Example: turns 0 to 3 are known; mark 5 stands at the end of turn 2, mark 6 at that of turn 3, and
mark 7 in the answer's head, which a longer text does not have. Now there are two turns more. Where
a block that begins behind mark 5 ends before mark 6, turns 2 to 5 are written, and tokenized from
mark 5 on.

Rules of this file: the text between a mark and the end of what is known is always written again, or
a special token might lie on the border that is none in the longer text.
"""

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from inferencecache.picker.prompt.history import (
    NOTHING_KNOWN,
    Encode,
    Found,
    Known,
    KnownText,
    Learned,
    blocks_from,
    further_names,
)


class TakenUp(NamedTuple):
    """Where a text is taken up.

    Attributes:
        text: What is known of it.
        start: Number of the mark.
        until: Number of the last mark that a longer text has.
    """

    text: KnownText
    start: int
    until: int

    @property
    def turn(self) -> int:
        """Number of the turn in which it stands, 1 or more."""
        return self.text.turns[self.start]

    @property
    def offset(self) -> int:
        """How many characters of that turn stand before it."""
        return self.text.offsets[self.start]


def taken_up(text: KnownText, block_tokens: int) -> TakenUp | None:
    """Return where a longer text can be taken up; None where only at its beginning."""
    until = _last_turn(text, len(text.turns))
    start, known_tokens = until, text.tokens[until]
    while start:
        start = _last_turn(text, start)
        if -(-text.tokens[start] // block_tokens) * block_tokens <= known_tokens:
            break
    return TakenUp(text, start, until) if start else None


def further_blocks(
    at: TakenUp, pieces: Sequence[str], encode: Encode, block_tokens: int
) -> Learned | None:
    """Return the blocks of a text that goes on; None if it does not.

    Args:
        at: Where it was taken up.
        pieces: What is written from there on, the first beginning with a special token.
        encode: Tokenizes pieces.
        block_tokens: Tokens per block, >= 1.

    Complexity: O(n) in what is written, and a copy of what is known.
    """
    text, start, until = at
    names = text.names[:start] + further_names(text.names[start], pieces)
    if names[until : until + 1] != text.names[until : until + 1]:
        return None
    return blocks_from(start, pieces, Known(names, Found(text, until)), encode, block_tokens)


def with_turns(
    learned: Learned,
    beginning: bytes,
    pieces: Sequence[str],
    starts: Sequence[int],
    at: TakenUp | None = None,
) -> Learned:
    """Return *learned* so that longer conversations find it by their turns.

    Args:
        learned: What was learned of a conversation.
        beginning: Name of all its turns as they stand in a body.
        pieces: What was written of it.
        starts: Where in that turns begin, and where the last one ends; the first of them is that
            in which the text was taken up, or the first of all.
        at: Where it was taken up; None if it was written from its beginning.
    """
    known, start = (NOTHING_KNOWN.text, 0) if at is None else (at.text, at.start)
    turn, offset = (0, 0) if at is None else (at.turn, at.offset)
    places = [
        _place_in_turns(place, turn, starts)
        for place in accumulate(map(len, pieces[:-1]), initial=offset)
    ]
    text = KnownText(
        hashes=learned.text.hashes,
        names=learned.text.names,
        tokens=learned.text.tokens,
        turns=known.turns[:start] + tuple(number for number, _ in places),
        offsets=known.offsets[:start] + tuple(before for _, before in places),
        characters=known.characters + sum(map(len, pieces)),
        beginning=beginning,
    )
    return Learned(blocks=learned.blocks, text=text, former=learned.former)


def _place_in_turns(place: int, first: int, starts: Sequence[int]) -> tuple[int, int]:
    """Return in which turn a place is, and how far behind its beginning; zeros for in none."""
    number = bisect(starts, place) - 1
    if number < 0 or place > starts[-1]:
        return 0, 0
    return first + number, place - starts[number]


def _last_turn(text: KnownText, end: int) -> int:
    """Return the last mark before *end* at which a text can be taken up; 0 for none."""
    return next((number for number in range(end - 1, 0, -1) if text.turns[number]), 0)
