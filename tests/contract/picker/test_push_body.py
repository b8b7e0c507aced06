"""PushBody: what is accepted, what is refused, and that nothing stays charged (list A)."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import grpc
import pytest
from served_picker import MIB, PROMPT, SMALL, ServedPicker, messages, refused, serve_picker, until

from inferencecache.clock import NS_PER_MS, ManualClock
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.service.pick import PickParts, PickPlane
from inferencecache.transport.random_ids import random_id

DECLARED = "kinference-declared-length"
REQUEST_ID = "kinference-client-request-id"
INVALID = grpc.StatusCode.INVALID_ARGUMENT
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED


def declaring(*lengths: str) -> tuple[tuple[str, str], ...]:
    """Return metadata that announces *lengths*."""
    return tuple((DECLARED, length) for length in lengths)


async def test_three_chunks_make_a_body(served: ServedPicker) -> None:
    """A1: the answer names the body and counts its bytes."""
    pushed = await served.push(b"abc", b"de", b"f")
    assert pushed.stream_id
    assert pushed.total_bytes == 6


@pytest.mark.parametrize("size", [1, 3, 7, 1_000])
async def test_boundaries_mean_nothing(served: ServedPicker, size: int) -> None:
    """A2: cut anywhere, inside a character too, a body is the same body."""
    body = '{"model": "m", "prompt": "é漢😀"}'.encode()
    chunks = [body[start : start + size] for start in range(0, len(body), size)]
    picked = await served.push_and_pick(*chunks)
    assert picked.outcome == pb.PickResponse.OK
    assert await served.pull(picked.response_id) == body


async def test_empty_chunks_count_nothing(served: ServedPicker) -> None:
    """A3: an empty message between others is no mistake."""
    pushed = await served.push(PROMPT[:5], b"", b"", PROMPT[5:], b"")
    assert pushed.total_bytes == len(PROMPT)
    assert (await served.pick(pushed.stream_id)).outcome == pb.PickResponse.OK


async def test_no_chunk_is_an_empty_body(served: ServedPicker) -> None:
    """A4: it can be pushed; it is no request."""
    pushed = await served.push()
    assert pushed.total_bytes == 0
    picked = await served.pick(pushed.stream_id)
    assert picked.outcome == pb.PickResponse.BAD_REQUEST
    assert picked.reason == "body=empty"


async def test_a_chunk_of_one_mebibyte_is_accepted(served: ServedPicker) -> None:
    """A5: the limit is on the chunk, not on the message around it."""
    assert (await served.push(b"x" * MIB)).total_bytes == MIB


@pytest.mark.parametrize("size", [MIB + 1, 5 * MIB])
async def test_a_larger_chunk_is_refused(served: ServedPicker, size: int) -> None:
    """A6, A7: whether the transport or the picker notices it."""
    async with refused(EXHAUSTED):
        await served.push(b"x" * size)
    await until(lambda: served.buffered_bytes == 0)


@pytest.mark.parametrize("size", [MIB + 1, 5 * MIB])
async def test_a_larger_chunk_after_good_ones_discards_them(
    served: ServedPicker, size: int
) -> None:
    """A8: the stream looks closed to its reader, and must not count as closed."""
    async with refused(EXHAUSTED):
        await served.push(b"x" * 1_000, b"y" * 1_000, b"z" * size)
    await until(lambda: served.buffered_bytes == 0 and not len(served.picker.plane.bodies))


async def test_the_announced_length_is_checked(served: ServedPicker) -> None:
    """A9, A12: a true one and none at all are both accepted."""
    metadata = declaring(str(len(PROMPT)))
    assert (await served.push(PROMPT, metadata=metadata)).total_bytes == len(PROMPT)
    assert (await served.push(PROMPT)).total_bytes == len(PROMPT)


async def test_less_than_announced_is_refused(served: ServedPicker) -> None:
    """A10: a clean end does not prove that everything was sent."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.push(PROMPT, metadata=declaring("100"))
    assert caught.value.code() is INVALID
    assert caught.value.details() == (
        f"PushBody: {DECLARED}: 100 is not allowed; expected {len(PROMPT)}, what arrived"
    )
    assert served.buffered_bytes == 0


async def test_more_than_announced_is_refused_at_once(served: ServedPicker) -> None:
    """A11: the call ends while its sender is still waiting with more."""
    call = served.stub.PushBody(metadata=declaring("5"))
    await call.write(pb.BodyChunk(chunk=b"123456"))
    assert await call.code() is INVALID
    assert served.buffered_bytes == 0


async def test_an_announced_nothing_is_nothing(served: ServedPicker) -> None:
    """A13: 0 is a length like any other."""
    assert (await served.push(metadata=declaring("0"))).total_bytes == 0
    async with refused(INVALID):
        await served.push(b"x", metadata=declaring("0"))


@pytest.mark.parametrize("length", ["abc", "-1", "", "1e3", "1 2", "+5", "0x10", "9" * 21])
async def test_what_is_no_decimal_is_refused(served: ServedPicker, length: str) -> None:
    """A14: as INVALID_ARGUMENT, never as a failure of the server."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.push(b"x", metadata=declaring(length))
    assert caught.value.code() is INVALID
    assert caught.value.details() == (
        f"PushBody: {DECLARED}: {length!r} is not allowed; expected 1 to 20 decimal digits"
    )


async def test_two_announcements_must_agree(served: ServedPicker) -> None:
    """A15: the same twice is accepted, two that differ are not."""
    assert (await served.push(b"12", metadata=declaring("2", "2"))).total_bytes == 2
    async with refused(INVALID):
        await served.push(b"12", metadata=declaring("2", "3"))


async def test_too_much_is_refused_before_any_of_it(served: ServedPicker) -> None:
    """A16: the announcement alone is enough."""
    call = served.stub.PushBody(metadata=declaring(str(SMALL.body_bytes_max + 1)))
    assert await call.code() is EXHAUSTED


async def test_a_body_has_a_budget(served: ServedPicker) -> None:
    """A17: one byte too many ends the upload, and no other."""
    other = served.stub.PushBody()
    await other.write(pb.BodyChunk(chunk=b"abc"))
    chunks = [b"x" * (MIB // 2)] * 16
    async with refused(EXHAUSTED):
        await served.push(*chunks, b"x")
    await until(lambda: served.buffered_bytes == 3)
    await other.done_writing()
    assert (await other).total_bytes == 3


@pytest.mark.parametrize("ending", ["pull", "abort"])
async def test_all_bodies_share_a_budget(served: ServedPicker, ending: str) -> None:
    """A18: what one lets go, another can have."""
    rest = b'"%s"}' % (b"x" * (MIB - 100))
    first = await served.push_and_pick(b'{"model":"m","prompt":', rest)
    assert first.outcome == pb.PickResponse.OK
    seven = [b"x" * MIB] * 7
    for _ in range(2):
        await served.push(*seven)
    async with refused(EXHAUSTED):
        await served.push(*seven[:2])
    if ending == "pull":
        await served.pull(first.response_id)
    else:
        await served.abort(first.response_id)
    await until(lambda: served.buffered_bytes == 14 * MIB)
    assert (await served.push(*seven[:2])).total_bytes == 2 * MIB


async def test_announcements_are_not_charged() -> None:
    """A19: a hundred that announce much and send a byte leave room for all."""
    settings = replace(SMALL, body_bytes_max=1_024 * MIB)
    async with serve_picker(settings, clock=ManualClock(1)) as served:
        calls = [served.stub.PushBody(metadata=declaring(str(1_024 * MIB))) for _ in range(100)]
        for call in calls:
            await call.write(pb.BodyChunk(chunk=b"x"))
        await until(lambda: served.buffered_bytes == 100)
        assert (await served.push(b"y" * MIB)).total_bytes == MIB
        for call in calls:
            call.cancel()
        await until(lambda: served.buffered_bytes == MIB)


def test_a_long_upload_is_no_idle_one() -> None:
    """A20: only the silence between two chunks is limited."""
    clock = ManualClock(1)
    plane = PickPlane(PickParts(settings=SMALL, clock=clock, new_id=random_id))
    body = plane.open_upload(None)
    for _ in range(25):
        clock.advance_ns(SMALL.upload_idle_ns * 8 // 10)
        plane.tick()
        plane.append(body, b"x")
    assert plane.complete(body)


@pytest.mark.parametrize("chunks", [0, 1])
async def test_silence_ends_an_upload(chunks: int) -> None:
    """A21: before the first chunk and after it."""
    settings = replace(SMALL, upload_idle_ns=300 * NS_PER_MS)
    async with serve_picker(settings, clock=ManualClock(1)) as served:
        call = served.stub.PushBody()
        for _ in range(chunks):
            await call.write(pb.BodyChunk(chunk=b"x"))
        assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert served.buffered_bytes == 0


async def test_a_deadline_of_the_caller_discards_the_body(served: ServedPicker) -> None:
    """A25: it is a reset like any other."""
    call = served.stub.PushBody(timeout=1.0)
    await call.write(pb.BodyChunk(chunk=b"x" * 1_000))
    assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await until(lambda: served.buffered_bytes == 0)


async def test_the_callers_name_is_in_the_log(served: ServedPicker) -> None:
    """A26: shortened if it is long; none is fine."""
    await served.push(b"x", metadata=((REQUEST_ID, "call-7"),))
    await served.push(b"x", metadata=((REQUEST_ID, "z" * 10_240),))
    await served.push(b"x")
    names = [fields["client_request_id"] for event, fields in served.recorder.lines]
    assert names[0] == "call-7"
    assert names[1] == "z" * 256
    assert names[2] == ""


async def test_other_metadata_is_ignored(served: ServedPicker) -> None:
    """A27: callers send what they like."""
    metadata = (("x-anything", "1"), ("kinference-other", "2"), ("x-bytes-bin", b"\xff\x00"))
    assert (await served.push(b"x", metadata=metadata)).total_bytes == 1


async def test_ids_are_unique_and_cannot_be_guessed(served: ServedPicker) -> None:
    """A28: never 0, never the next number."""
    plane = served.picker.plane
    names = []
    for _ in range(10_000):
        body = plane.open_upload(None)
        names.append(plane.complete(body))
        plane.bodies.retract(body)
    assert len(set(names)) == 10_000
    assert 0 not in names
    assert max(names) > 2**62
    assert min(abs(b - a) for a, b in pairwise(names)) > 2**32


@pytest.mark.parametrize("method", [grpc.Compression.Gzip, grpc.Compression.Deflate])
async def test_compressed_chunks_are_accepted(
    served: ServedPicker, method: grpc.Compression
) -> None:
    """A29: up to the same limit."""
    pushed = await served.stub.PushBody(messages([b"x" * 10_000]), compression=method)
    assert pushed.total_bytes == 10_000
    async with refused(EXHAUSTED):
        await served.stub.PushBody(messages([b"x" * 5 * MIB]), compression=method)
    await until(lambda: served.buffered_bytes == 10_000)


async def test_a_message_that_does_not_parse_is_refused(served: ServedPicker) -> None:
    """Bytes that are no BodyChunk end the upload as INVALID_ARGUMENT."""
    push = served.channel.stream_unary("/kinference.v1.Picker/PushBody")
    async with refused(INVALID):
        await push(iter([b"\x0a\xff"]))
    assert served.buffered_bytes == 0


async def test_the_number_of_bodies_is_limited() -> None:
    """Empty uploads take room, too."""
    settings = replace(SMALL, bodies_max=2)
    async with serve_picker(settings, clock=ManualClock(1)) as served:
        await asyncio.gather(served.push(), served.push())
        async with refused(EXHAUSTED):
            await served.push()
