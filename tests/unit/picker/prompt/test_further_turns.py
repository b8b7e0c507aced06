"""A text is taken up where it is known, and only if it goes on as it was known."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import plain_hashes

from inferencecache.picker.prompt.further_turns import further_blocks, taken_up, with_turns
from inferencecache.picker.prompt.history import (
    NOTHING_KNOWN,
    Histories,
    KnownText,
    Learned,
    TextNames,
    text_blocks,
)

NAMES = TextNames(b"k" * 32, b"")
TURNS = ("<sss", "<aaaaa", "<bbbbbb", "<ccccccc", "<ddd")
HEAD = "<h"


def letters(pieces: list[str]) -> list[list[int]]:
    """Return each letter as a token."""
    return [[ord(letter) for letter in piece] for piece in pieces]


def whole(turns: Sequence[str], head: str, block_tokens: int) -> Learned:
    """Return what is learned of a conversation that is read at once."""
    pieces = ["", *turns, head] if head else ["", *turns]
    learned = text_blocks(pieces, NAMES.names_of(pieces), NOTHING_KNOWN, letters, block_tokens)
    starts = [sum(map(len, turns[:number])) for number in range(len(turns) + 1)]
    return with_turns(learned, b"name of %d" % len(turns), pieces, starts)


def test_places_are_those_of_turns() -> None:
    """What stands in the first turn, or in the head behind its beginning, is not to be used."""
    learned = whole(TURNS[:3], HEAD, 4)

    assert learned.text.turns == (0, 0, 1, 2, 3)
    assert learned.text.offsets == (0, 0, 0, 0, 0)
    assert learned.text.characters == 19
    pieces = ["<sss<a", "<b", "<c", "<head", "<more"]
    text = with_turns(learned, b"", pieces, [1, 4, 9, 12]).text
    assert (text.turns, text.offsets) == ((0, 1, 1, 2, 0), (0, 2, 4, 1, 0))


@pytest.mark.parametrize(("block_tokens", "start"), [(1, 3), (6, 3), (8, 3), (9, 2), (19, None)])
def test_a_text_is_taken_up_where_a_whole_block_is_known_behind_it(
    block_tokens: int, start: int | None
) -> None:
    """Turn 1 begins at mark 2 with 4 tokens before it, turn 2 with 10; turn 3 would with 17."""
    text = whole(TURNS[:3], HEAD, block_tokens).text
    at = taken_up(text, block_tokens)

    assert text.tokens == (0, 0, 4, 10, 17)
    assert at == (None if start is None else (text, start, 4))


def test_a_text_without_turns_is_not_taken_up() -> None:
    """Nor one of which nothing but its beginning is known."""
    learned = whole(TURNS[:1], "", 1)

    assert taken_up(learned.text, 1) is None
    assert taken_up(KnownText(b"", (b"", b"a"), (0, 9)), 1) is None


@given(st.integers(2, 4), st.integers(1, 12), st.sampled_from(["", HEAD]))
def test_further_turns_have_the_blocks_of_the_whole(
    known: int, block_tokens: int, head: str
) -> None:
    """And are known afterwards as if all had been read at once."""
    before, after = whole(TURNS[:known], head, block_tokens), whole(TURNS, head, block_tokens)
    at = taken_up(before.text, block_tokens)
    if at is None:
        return
    turns = TURNS[at.turn :]
    pieces = [*turns, head] if head else list(turns)
    starts = [sum(map(len, turns[:number])) for number in range(len(turns) + 1)]
    learned = further_blocks(at, pieces, letters, block_tokens)
    assert learned is not None
    found = with_turns(learned, b"name of 5", pieces, starts, at)

    text = "".join((*TURNS, head))
    assert found.blocks == after.blocks
    assert found.blocks.hashes == plain_hashes([ord(letter) for letter in text], block_tokens)
    assert found.text.names == after.text.names
    assert found.text.tokens == after.text.tokens
    assert (found.text.turns, found.text.offsets) == (after.text.turns, after.text.offsets)
    assert found.text.characters >= after.text.characters


@pytest.mark.parametrize(
    "pieces",
    [
        ["<bbbbbb", "<ccccccc"],
        ["<bbbbbb<", "ccc"],
        ["<bbbbbx", "<"],
        ["<bbbbbb"],
        ["<bbbbbb<ccccccc"],
    ],
)
def test_what_is_not_written_as_before_is_not_taken_up(pieces: list[str]) -> None:
    """The last known mark has to be there, with the same text before it."""
    before = whole(TURNS[:3], HEAD, 1).text
    at = taken_up(before, 1)
    assert at is not None
    goes_on = len(pieces) > 1 and pieces[0] == TURNS[2]

    assert (further_blocks(at, pieces, letters, 1) is not None) == goes_on


def test_texts_are_found_by_the_last_beginning_that_is_known() -> None:
    """Until they are let go; a newer one takes the place of the one it goes on from."""
    histories = Histories(1 << 20)
    shorter, longer = whole(TURNS[:3], HEAD, 4), whole(TURNS, HEAD, 4)
    histories.keep(shorter.text, NOTHING_KNOWN)
    names = [b"name of 3", b"name of 4"]

    assert histories.find_beginning(names) is shorter.text
    histories.keep(longer.text, histories.find(longer.text.names))
    assert histories.find_beginning(names) is None
    assert histories.find_beginning([*names, b"name of 5"]) is longer.text
    assert histories.used_bytes == longer.text.size
    assert Histories(0).find_beginning(names) is None
