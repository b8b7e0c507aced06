"""Pieces of a message, merged, are the message; none of them is long to look for or to parse."""

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from work_counter import lines_run

from inferencecache.transport.wire_pieces import PIECE_BYTES, PIECE_FIELDS, MessagePieces
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

MESSAGE = pb.LookupRouteRequest
PIECES = MessagePieces(MESSAGE.DESCRIPTOR, 1_000)

fields = st.sampled_from(
    [
        b"\x3a\x02ab",
        b"\x3a\x03abc",
        b"\x3a\x00",
        b"\x3a\x82\x00ab",  # a length that takes more bytes than it needs
        b"\x40\x10",
        b"\x42\x02\x10\x90\x42\x00",
        b"\x0a\x01n",
        b"\x0a\x01\xff",  # text that is not UTF-8
        b"\x32\x02\x08\x01",
        b"\x3d\x01\x02\x03\x04",
        b"\x39\x01\x02\x03\x04\x05\x06\x07\x08",
        b"\xfa\x07\x02ab",
        b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    ]
)
messages = st.lists(st.tuples(fields, st.integers(1, 300)), max_size=6).map(
    lambda runs: b"".join(field * times for field, times in runs)
)


def merged(data: bytes, pieces: MessagePieces = PIECES) -> pb.LookupRouteRequest | None:
    """Return what the pieces of *data* make, None where they make nothing."""
    message = MESSAGE()
    try:
        for piece in pieces.cut(data):
            message.MergeFromString(piece)
    except DecodeError:
        return None
    return message


def parsed(data: bytes) -> pb.LookupRouteRequest | None:
    """Return what the library makes of *data*."""
    try:
        return MESSAGE.FromString(data)
    except DecodeError:
        return None


@given(messages, st.binary(max_size=4))
def test_pieces_make_what_the_library_makes(data: bytes, more: bytes) -> None:
    """Whatever fields follow one another; a group is nothing that clients write."""
    for each in (data, data + more):
        found = merged(each)
        assert found == parsed(each) or (found is None and len(each) > len(data))


@given(st.data(), st.integers(1, 3))
def test_every_prefix_of_a_message_makes_what_the_library_makes(
    data: st.DataObject, times: int
) -> None:
    """Where it is cut off makes no difference between the two."""
    whole = data.draw(messages) * times
    for end in range(min(len(whole), 60)):
        assert merged(whole[:end]) == parsed(whole[:end])


@pytest.mark.parametrize(
    "data",
    [
        b"\x3a\x08abcdefgh" * 100_000,
        b"\x3a\x00" * 100_000,
        b"\x3a\x02ab\x3a\x01a" * 50_000,
        b"\x40\x10" * 50_000,
        MESSAGE(block_hashes=[b"%08d" % number for number in range(20_000)]).SerializeToString(),
        MESSAGE(token_ids=range(100_000)).SerializeToString(),
        MESSAGE(block_token_counts=[300] * 100_000, model_id="m").SerializeToString(),
        MESSAGE(prefix_hash=b"x" * 200_000, model_id="m").SerializeToString(),
    ],
)
def test_long_messages_come_in_short_pieces(data: bytes) -> None:
    """Each of few bytes, but for one that is a single hash, and together the message."""
    pieces = list(PIECES.cut(data))

    assert merged(data) == parsed(data)
    assert len(pieces) > 1
    for piece in pieces:
        part = MESSAGE.FromString(piece)
        assert len(piece) <= PIECE_BYTES + 16 or len(part.prefix_hash) == 200_000


def test_fields_that_take_a_look_each_make_shorter_pieces() -> None:
    """As many as are looked for between two pieces, not as many as have room."""
    pieces = list(PIECES.cut(b"\x3a\x02ab\x3a\x01a" * 10_000))

    assert max(len(MESSAGE.FromString(piece).block_hashes) for piece in pieces) == PIECE_FIELDS


@pytest.mark.parametrize("character", ["a", "é", "€", "\N{GRINNING FACE}"])
def test_a_long_text_is_cut_between_characters(character: str) -> None:
    """Beyond what is of interest, so that it is too long for whoever looks."""
    text = character * 40_000
    found = merged(MESSAGE(prompt_text=text, model_id="m").SerializeToString())

    assert found is not None
    assert found.model_id == "m"
    assert text.startswith(found.prompt_text)
    assert 1_000 < len(found.prompt_text.encode()) < 1_005


@pytest.mark.parametrize("before", [b"", "é".encode(), "\N{GRINNING FACE}".encode()])
def test_a_text_whose_character_does_not_end_is_refused(before: bytes) -> None:
    """At once: no character has more than four bytes."""
    text = b"a" * (1_001 - len(before)) + before + b"\x80" * 60_000
    data = b"\x52\xc9\xdc\x03" + text

    def refuse() -> None:
        with pytest.raises(DecodeError):
            list(PIECES.cut(data))

    assert len(text) == 0xEE49
    assert lines_run(refuse) < 1_000


@pytest.mark.parametrize(
    "data",
    [
        b"\x32\x80\x80\x04" + b"\x78\x01" * 32_768,  # a long message within the message
        b"\x3b\x3a\x02ab\x3c",  # a group
        b"\x42\x80\x80\x04" + b"\xff" * 65_536,  # a number without an end
        b"\x3a\x02ab\x3a\x01a" * 600_000,  # too many fields to look for
        b"\x78\x01" * 300_000,
    ],
)
def test_what_would_take_long_is_refused(data: bytes) -> None:
    """Nothing that clients write is like it."""
    with pytest.raises(DecodeError):
        list(PIECES.cut(data))
