"""PullBody: exact bytes, once, at any pace (list C)."""

import asyncio
from dataclasses import replace

import grpc
import pytest
from served_picker import MIB, PROMPT, SMALL, ServedPicker, refused, serve_picker, until

from inferencecache.clock import ManualClock
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.picker.choice import Choice, LocalDestination, Question
from inferencecache.settings.picker import PickerSettings

NOT_FOUND = grpc.StatusCode.NOT_FOUND

NAMES = ["n", "longer-than-before", "same", "é漢😀", 'with "quotes"', "back\\slash", "tab\there"]
SIZES = [6_349, 65_536, 131_072, 131_073, 1_014_506, 4 * MIB, 4 * MIB + 1]


class Renaming:
    """A chooser that gives every request another model."""

    def __init__(self, target: str) -> None:
        self.target = target

    async def choose(self, question: Question) -> Choice:
        """Return the one destination."""
        assert question.content.length
        destination = LocalDestination(endpoint="10.0.0.9:1")
        return Choice(destination=destination, target_model=self.target)


def filled(size: int, *, model_first: bool) -> bytes:
    """Return a body of *size* bytes that names the model ``same``."""
    model, prompt = b'"model":"same"', b'"prompt":"%s"'
    parts = (model, prompt) if model_first else (prompt, model)
    empty = b"{%s,%s}" % parts
    return empty.replace(b"%s", b"x" * (size - len(empty) + 2))


@pytest.mark.parametrize(
    "body",
    [
        PROMPT,
        b' {\n"model" :\t"m" , "a":1, "a":2, "u":"\\u00e9\\/\\ud83d", "f":1.0e+2 }\r\n',
        b'{"model":"m","model":"m","big":123456789012345678901234567890}',
    ],
)
async def test_without_a_rewrite_no_byte_changes(served: ServedPicker, body: bytes) -> None:
    """C51, C52: spaces, order, escapes, numbers and repeated keys stay."""
    picked = await served.push_and_pick(body)
    pulled = await served.pull(picked.response_id)
    assert pulled == body
    assert picked.body_total_bytes == len(body)


@pytest.mark.parametrize("name", NAMES)
async def test_a_rewrite_changes_the_model_alone(name: str) -> None:
    """C53, F45: longer, shorter, of the same length, or in need of escapes."""
    body = b'{"a":{"model":"same"}, "model" : "same" ,"z":"model"}'
    async with serve_picker(clock=ManualClock(1), chooser=Renaming(name)) as served:
        pushed = await served.push(body)
        picked = await served.pick(pushed.stream_id)
        pulled = await served.pull(picked.response_id)
    assert pushed.total_bytes == len(body)
    assert picked.body_total_bytes == len(pulled)
    head, tail = body.split(b'"model" : "same"')
    assert pulled.startswith(head + b'"model" : "')
    assert pulled.endswith(tail)
    written = pulled[len(head) + len(b'"model" : ') : -len(tail)].decode()
    assert pb.BodyChunk(chunk=pulled).IsInitialized()
    assert (
        written == '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '"'
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("model_first", [True, False])
@pytest.mark.parametrize("chunk_bytes", [65_536, MIB])
async def test_bodies_of_any_size_come_back(
    size: int, *, model_first: bool, chunk_bytes: int
) -> None:
    """C54, F46: in chunks of at most one mebibyte, wherever the model stands."""
    body = filled(size, model_first=model_first)
    settings = replace(SMALL, pull_chunk_bytes=MIB)
    chooser = Renaming("another-name")
    async with serve_picker(settings, clock=ManualClock(1), chooser=chooser) as served:
        chunks = [body[start : start + chunk_bytes] for start in range(0, size, chunk_bytes)]
        picked = await served.push_and_pick(*chunks)
        pulled = await served.pull_chunks(picked.response_id)
        assert all(0 < len(chunk) <= MIB for chunk in pulled)
        assert b"".join(pulled) == body.replace(b"same", b"another-name")
        assert picked.body_total_bytes == sum(map(len, pulled))
        await until(lambda: served.buffered_bytes == 0)


@pytest.mark.parametrize("chunk_bytes", [1, 7])
async def test_bodies_in_tiny_chunks_come_back(served: ServedPicker, chunk_bytes: int) -> None:
    """F46: byte by byte."""
    body = b'{"model":"m","prompt":"%s"}' % (b"x" * 3_000)
    chunks = [body[start : start + chunk_bytes] for start in range(0, len(body), chunk_bytes)]
    picked = await served.push_and_pick(*chunks)
    assert await served.pull(picked.response_id) == body


@pytest.mark.long
async def test_32_mebibytes_come_back() -> None:
    """F46: at the published limits."""
    body = filled(32 * MIB, model_first=False)
    settings = PickerSettings(bind_address=SMALL.bind_address)
    async with serve_picker(settings, chooser=Renaming("another-name")) as served:
        chunks = [body[start : start + MIB] for start in range(0, len(body), MIB)]
        picked = await served.push_and_pick(*chunks)
        assert await served.pull(picked.response_id) == body.replace(b"same", b"another-name")


@pytest.mark.parametrize("response_id", [0, 12_345])
async def test_an_id_that_nobody_has_is_not_found(served: ServedPicker, response_id: int) -> None:
    """C55: 0 is such an id, too."""
    async with refused(NOT_FOUND):
        await served.pull(response_id)


async def test_a_second_pull_is_not_found(served: ServedPicker) -> None:
    """C56: after the end of the first one."""
    picked = await served.push_and_pick()
    await served.pull(picked.response_id)
    async with refused(NOT_FOUND):
        await served.pull(picked.response_id)


async def test_of_two_pulls_at_once_one_wins(served: ServedPicker) -> None:
    """C56: the other one is NOT_FOUND."""
    picked = await served.push_and_pick()
    answers = await asyncio.gather(
        *(served.pull(picked.response_id) for _ in range(2)), return_exceptions=True
    )
    assert [answer for answer in answers if isinstance(answer, bytes)] == [PROMPT]
    errors = [answer for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]
    assert [error.code() for error in errors] == [NOT_FOUND]


async def test_after_an_abort_there_is_nothing_to_pull(served: ServedPicker) -> None:
    """C60: the body went with it."""
    picked = await served.push_and_pick()
    assert await served.abort(picked.response_id)
    assert served.buffered_bytes == 0
    async with refused(NOT_FOUND):
        await served.pull(picked.response_id)


async def test_a_body_that_nobody_pulls_goes_and_its_decision_stays() -> None:
    """C61: the bytes are needed elsewhere; reports are still welcome."""
    clock = ManualClock(1)
    async with serve_picker(clock=clock) as served:
        picked = await served.push_and_pick()
        clock.advance_ns(SMALL.unpulled_ttl_ns)
        await until(lambda: served.buffered_bytes == 0)
        async with refused(NOT_FOUND):
            await served.pull(picked.response_id)
        assert await served.first(picked.response_id)
        assert await served.final(picked.response_id)


async def test_reports_come_after_the_pull(served: ServedPicker) -> None:
    """C62: to let go of the body is not to forget the decision."""
    picked = await served.push_and_pick()
    await served.pull(picked.response_id)
    await until(lambda: served.buffered_bytes == 0)
    assert await served.first(picked.response_id)
    assert await served.final(picked.response_id)
