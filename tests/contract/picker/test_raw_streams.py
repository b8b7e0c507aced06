"""What only a hand-made client does: resets, half frames, windows of one byte (2.A, 2.C, 2.I)."""

import inspect
import io
import json

import h2.errors
import pytest
from raw_http2 import PULL, PUSH, Headers, RawClient, framed, raw_client
from served_picker import MIB, PROMPT, SMALL, ServedPicker, serve_picker, until

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.logs import LogSettings
from inferencecache.transport import grpc_port
from inferencecache.transport.structured_log import configure_log

CODES = [
    h2.errors.ErrorCodes.CANCEL,
    h2.errors.ErrorCodes.NO_ERROR,
    h2.errors.ErrorCodes.INTERNAL_ERROR,
    h2.errors.ErrorCodes.STREAM_CLOSED,
    h2.errors.ErrorCodes.ENHANCE_YOUR_CALM,
]
CHUNK = framed(pb.BodyChunk(chunk=b"x" * 1_000).SerializeToString())


def is_empty(served: ServedPicker) -> bool:
    """Return whether nothing is kept."""
    return served.buffered_bytes == 0 and len(served.picker.plane.bodies) == 0


async def send_half(client: RawClient) -> object:
    """Open an upload and send two chunks of it."""
    stream = await client.open(PUSH)
    await client.send(stream, CHUNK * 2)
    return stream


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
async def test_a_reset_upload_leaves_nothing(
    served: ServedPicker, code: h2.errors.ErrorCodes
) -> None:
    """A22: whatever the reset says, no bytes stay and no id is valid."""
    async with raw_client(served.target) as client:
        stream = await send_half(client)
        await until(lambda: served.buffered_bytes == 2_000)
        await client.reset(stream, code)
        await until(lambda: is_empty(served))
        assert not served.picker.plane.bodies._by_stream_id


async def test_a_thousand_resets_leave_nothing(served: ServedPicker) -> None:
    """A22: the reset races its chunks, and no body is ever left over."""
    async with raw_client(served.target) as client:
        for number in range(1_000):
            stream = await send_half(client)
            await client.reset(stream, CODES[number % len(CODES)])
        await until(lambda: is_empty(served))
        assert (await served.push(PROMPT)).total_bytes == len(PROMPT)
    assert served.buffered_bytes == len(PROMPT)


async def test_a_dropped_connection_leaves_nothing(served: ServedPicker) -> None:
    """A23: all uploads on it are reset."""
    async with raw_client(served.target) as client:
        for _ in range(20):
            await send_half(client)
        await until(lambda: served.buffered_bytes == 40_000)
        client.close()
        await until(lambda: is_empty(served))


async def test_an_end_within_a_message_is_caught_by_the_announced_length(
    served: ServedPicker,
) -> None:
    """A24: the transport takes it for a clean end; only the length tells."""
    async with raw_client(served.target) as client:
        announced = (("kinference-declared-length", "2000"),)
        stream = await client.open(PUSH, announced)
        await client.send(stream, CHUNK + CHUNK[:500], end=True)
        assert (await client.answer(stream)).status == "3"
        await until(lambda: is_empty(served))


async def test_an_end_within_a_message_is_otherwise_not_seen(served: ServedPicker) -> None:
    """A24: a known limit of the transport: the cut message is as if it had not been sent."""
    async with raw_client(served.target) as client:
        stream = await client.open(PUSH)
        await client.send(stream, CHUNK + CHUNK[:500], end=True)
        assert (await client.answer(stream)).status == "0"
        assert served.buffered_bytes == 1_000


async def test_a_reset_pull_is_the_only_one(served: ServedPicker) -> None:
    """C57: single shot; the bytes go with the stream."""
    picked = await served.push_and_pick(*large_body())
    async with raw_client(served.target, acknowledges=False) as client:
        stream = await open_pull(client, picked.response_id)
        await client.until(lambda: len(stream.data) > 1_000)
        await client.reset(stream, h2.errors.ErrorCodes.CANCEL)
        await until(lambda: is_empty(served))
        again = await client.answer(await open_pull(client, picked.response_id))
        assert again.status == "5"


async def test_a_slow_reader_gets_everything() -> None:
    """C58, F81: for many times every limit, while others are served and nothing grows."""
    clock = ManualClock(1)
    async with serve_picker(SMALL, clock=clock) as served:
        body = large_body()
        picked = await served.push_and_pick(*body)
        async with raw_client(served.target, acknowledges=False) as client:
            stream = await open_pull(client, picked.response_id)
            total = picked.body_total_bytes
            while len(stream.data) < total:
                before = len(stream.data)
                await client.until(lambda count=before: len(stream.data) > count)
                clock.advance_ns(SMALL.decision_ttl_ns)
                served.picker.plane.tick()
                assert served.buffered_bytes >= total
                await client.allow(stream, len(stream.data) - before)
            await client.answer(stream)
        assert stream.status == "0"
        assert payload(bytes(stream.data)) == b"".join(body)
        await until(lambda: is_empty(served))
        assert await served.first(picked.response_id)


async def test_the_last_chunk_is_charged_until_it_is_sent(served: ServedPicker) -> None:
    """C58: a body of one chunk, of which the reader takes the beginning alone."""
    picked = await served.push_and_pick(b'{"model":"m","prompt":"%s"}' % (b"x" * 200_000))
    total = picked.body_total_bytes
    async with raw_client(served.target, acknowledges=False) as client:
        stream = await open_pull(client, picked.response_id)
        await client.until(lambda: len(stream.data) > 1_000)
        served.picker.plane.tick()
        assert served.buffered_bytes == total
        while not stream.is_over:
            seen = len(stream.data)
            await client.allow(stream, total)
            await client.until(lambda count=seen: stream.is_over or len(stream.data) > count)
        assert stream.status == "0"
        await until(lambda: is_empty(served))


async def test_an_abort_ends_a_pull_that_nobody_reads(served: ServedPicker) -> None:
    """C60: the bytes go at once; the stream never ends as if it were complete."""
    picked = await served.push_and_pick(*large_body())
    async with raw_client(served.target, acknowledges=False) as client:
        stream = await open_pull(client, picked.response_id)
        await client.until(lambda: len(stream.data) > 1_000)
        assert await served.abort(picked.response_id)
        assert is_empty(served)
        seen = 0
        while not stream.is_over:
            await client.allow(stream, len(stream.data) - seen)
            seen = len(stream.data)
            await client.until(lambda count=seen: stream.is_over or len(stream.data) > count)
        assert stream.status == "10"


async def test_a_dead_reader_gives_its_bytes_back(served: ServedPicker) -> None:
    """C59: a connection that ends takes its pulls with it."""
    picked = await served.push_and_pick(*large_body())
    async with raw_client(served.target, acknowledges=False) as client:
        stream = await open_pull(client, picked.response_id)
        await client.until(lambda: len(stream.data) > 1_000)
        client.close()
        await until(lambda: is_empty(served))


@pytest.mark.parametrize("accepted", [None, "identity", "gzip", "identity,gzip,deflate"])
async def test_answers_are_not_compressed(served: ServedPicker, accepted: str | None) -> None:
    """I92: whatever the caller could decompress; the flag of each message is 0."""
    headers = () if accepted is None else (("grpc-accept-encoding", accepted),)
    picked = await served.push_and_pick(b'{"model":"m","prompt":"%s"}' % (b"x" * 5_000))
    async with raw_client(served.target) as client:
        stream = await client.open(PULL, headers)
        request = pb.PullBodyRequest(response_id=picked.response_id)
        await client.send(stream, framed(request.SerializeToString()), end=True)
        await client.answer(stream)
    assert stream.status == "0"
    assert stream.data[0] == 0
    assert stream.headers.get("grpc-encoding", "identity") == "identity"


async def test_a_chunk_is_a_tag_a_length_and_its_bytes(served: ServedPicker) -> None:
    """I93: both ways; an empty message is an empty chunk."""
    async with raw_client(served.target) as client:
        stream = await client.open(PUSH)
        chunk = b"\x0a" + bytes([len(PROMPT)]) + PROMPT
        await client.send(stream, framed(chunk) + framed(b"") + framed(b"\x0a\x00"), end=True)
        await client.answer(stream)
        pushed = pb.PushBodyResponse.FromString(bytes(stream.data[5:]))
        assert pushed.total_bytes == len(PROMPT)
        picked = await served.pick(pushed.stream_id)
        pull = await client.answer(await open_pull(client, picked.response_id))
        assert bytes(pull.data) == framed(chunk)


async def test_connections_may_ping_and_be_idle(served: ServedPicker) -> None:
    """I94: with no call open and oftener than every ten seconds; none is ever sent away for it."""
    assert GrpcSettings().ping_interval_min_ns <= 10 * NS_PER_S
    async with raw_client(served.target) as client:
        for _ in range(100):
            await client.ping()
        assert (client.pongs, client.is_sent_away) == (100, False)
        stream = await client.open(PUSH)
        await client.send(stream, CHUNK, end=True)
        assert (await client.answer(stream)).status == "0"


def test_no_connection_grows_too_old() -> None:
    """I94: no option closes one for its age, or for being idle: ids live in one process."""
    source = inspect.getsource(grpc_port)
    assert "max_connection_age" not in source
    assert "max_connection_idle" not in source


async def test_a_stopped_reader_holds_nobody_up(served: ServedPicker) -> None:
    """C58: others on the same connection go on."""
    picked = await served.push_and_pick(*large_body())
    async with raw_client(served.target, acknowledges=False) as client:
        stopped = await open_pull(client, picked.response_id)
        await client.until(lambda: len(stopped.data) > 1_000)
        other = await served.push_and_pick()
        assert await served.pull(other.response_id) == PROMPT


@pytest.mark.usefixtures("untouched_logging")
async def test_headers_of_no_utf8_are_answered_and_not_logged(served: ServedPicker) -> None:
    """The core would log the whole value, each time it looks: one line, and nothing of it."""
    stream = io.StringIO()
    configure_log(LogSettings(format="json", level="info"), stream)
    secret = (("authorization", b"Bearer SECRET \xff"), ("x-other", b"SECRET \xfe" * 100))
    async with raw_client(served.target) as client:
        for _ in range(3):
            call = await client.open("/kinference.v1.Picker/Pick", secret)
            await client.send(call, framed(b""), end=True)
            assert (await client.answer(call)).status == "3"
    (line,) = stream.getvalue().splitlines()
    shown = json.loads(line)
    assert (shown["msg"], shown["level"]) == ("grpc_text_not_utf8", "WARN")
    assert "SECRET" not in line
    assert "stack" not in shown


@pytest.mark.parametrize(
    ("headers", "data"),
    [
        ((), b"\1\0\0\0\1x"),
        ((("grpc-encoding", "gzip"),), b"\1\0\0\0\1x"),
        ((("grpc-encoding", "br"),), b"\1\0\0\0\1x"),
        ((("grpc-timeout", "xx"),), b"\0\0\0\0\0"),
    ],
    ids=["no-encoding", "no-gzip", "unknown-encoding", "no-timeout"],
)
@pytest.mark.parametrize("method", ["Pick", "PushBody", "PullBody", "Abort"])
async def test_broken_framing_is_refused_before_the_picker(
    served: ServedPicker, method: str, headers: Headers, data: bytes
) -> None:
    """The library answers INTERNAL, as the page says; the picker has seen no failure, no body."""
    async with raw_client(served.target) as client:
        call = await client.open(f"/kinference.v1.Picker/{method}", headers)
        await client.send(call, data, end=True)
        assert (await client.answer(call)).status == "13"
    await until(lambda: is_empty(served))


@pytest.mark.parametrize("cut", [b"", b"\0\0\0\0\5x"], ids=["no-message", "half"])
@pytest.mark.parametrize("method", ["Pick", "PullBody", "Abort"])
async def test_a_call_without_its_message_holds_nobody_up(
    served: ServedPicker, method: str, cut: bytes
) -> None:
    """A known limit of the transport: only a deadline ends it; others are served meanwhile."""
    path = f"/kinference.v1.Picker/{method}"
    async with raw_client(served.target) as client:
        silent = [await client.open(path) for _ in range(90)]
        timed = await client.open(path, (("grpc-timeout", "50m"),))
        for call in (*silent, timed):
            await client.send(call, cut, end=True)
        assert (await client.answer(timed)).status == "4"
        whole = await client.open("/kinference.v1.Picker/Pick")
        await client.send(whole, framed(b""), end=True)
        assert (await client.answer(whole)).status == "3"
        assert not any(call.is_over for call in silent)
        assert is_empty(served)


def large_body() -> list[bytes]:
    """Return a body that fits no window."""
    return [b'{"model":"m","prompt":"', b"x" * (MIB // 2), b"y" * (MIB // 2), b'"}']


async def open_pull(client: RawClient, response_id: int) -> object:
    """Call PullBody."""
    stream = await client.open(PULL)
    request = pb.PullBodyRequest(response_id=response_id)
    await client.send(stream, framed(request.SerializeToString()), end=True)
    return stream


def payload(data: bytes) -> bytes:
    """Return the bytes of the chunks in a gRPC stream."""
    chunks, at = [], 0
    while at < len(data):
        length = int.from_bytes(data[at + 1 : at + 5], "big")
        chunks.append(pb.BodyChunk.FromString(data[at + 5 : at + 5 + length]).chunk)
        at += 5 + length
    return b"".join(chunks)
