"""Chunks on the wire, read and written without the message library."""

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.transport.picker_chunk import OutgoingChunk, read_chunk


@given(st.binary(max_size=300))
def test_any_chunk_is_read_and_written_as_the_library_does(content: bytes) -> None:
    """The two agree both ways; only an empty chunk has two forms."""
    message = pb.BodyChunk(chunk=content).SerializeToString()
    assert bytes(read_chunk(message) or b"") == content
    written = OutgoingChunk(memoryview(content)).SerializeToString()
    assert pb.BodyChunk.FromString(written).chunk == content
    assert written == (message or b"\x0a\x00")


@pytest.mark.parametrize("size", [127, 128, 16_383, 16_384, 1_048_576])
def test_lengths_of_any_size_are_written(size: int) -> None:
    """The length takes one byte per seven bits."""
    content = b"x" * size
    expected = pb.BodyChunk(chunk=content).SerializeToString()
    assert OutgoingChunk(content).SerializeToString() == expected
    assert read_chunk(expected) == content


@given(st.binary(max_size=40))
def test_any_bytes_are_read_as_the_library_does(message: bytes) -> None:
    """Unknown fields, the field twice, and bytes that are no message."""
    try:
        expected = pb.BodyChunk.FromString(message).chunk
    except DecodeError:
        expected = None
    got = read_chunk(message)
    assert (None if got is None else bytes(got)) == expected


@pytest.mark.parametrize(
    "message",
    [b"\x0a\x01a\x0a\x02bc", b"\x10\x07\x0a\x01a", b"\x0a\x81\x00a", b"\x0a\x01a\x10\x07"],
)
def test_unusual_messages_are_read(message: bytes) -> None:
    """What a later version or another encoder may send."""
    expected = pb.BodyChunk.FromString(message).chunk
    got = read_chunk(message)
    assert got is not None
    assert bytes(got) == expected
