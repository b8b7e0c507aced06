"""Pick: ids, outcomes, and what a body must look like (list B, G)."""

import asyncio
from collections.abc import Callable

import grpc
import pytest
from served_picker import MIB, PROMPT, SMALL, ServedPicker, refused, serve_picker, until

from inferencecache.clock import NS_PER_MS, NS_PER_S, ManualClock
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.picker.choice import (
    Choice,
    LocalDestination,
    Outcome,
    ProviderDestination,
    Question,
    Refusal,
)
from inferencecache.service.pick import PickParts, PickPlane

NOT_FOUND = grpc.StatusCode.NOT_FOUND
USED = grpc.StatusCode.FAILED_PRECONDITION
OK = pb.PickResponse.OK
BAD = pb.PickResponse.BAD_REQUEST


class Scripted:
    """A chooser that answers as told and keeps what it was asked."""

    def __init__(self, answer: Choice | Refusal) -> None:
        self.answer = answer
        self.questions: list[Question] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def choose(self, question: Question) -> Choice | Refusal:
        """Answer when allowed to."""
        self.questions.append(question)
        await self.may_answer.wait()
        return self.answer


def local(**fields: object) -> Choice:
    """Return a choice of an engine."""
    destination = LocalDestination(endpoint="10.0.0.9:1")
    return Choice(**{"destination": destination, "target_model": "m", **fields})


async def test_zero_is_no_id(served: ServedPicker) -> None:
    """B30: it means that there is none."""
    async with refused(grpc.StatusCode.INVALID_ARGUMENT):
        await served.pick(0)


@pytest.mark.parametrize(
    ("field", "request_of"),
    [
        ("tenant", lambda name: {"tenant": name}),
        ("inference_pool.namespace", lambda name: {"inference_pool": {"namespace": name}}),
        ("inference_pool.name", lambda name: {"inference_pool": {"name": name}}),
        (
            "inference_pool.resource_version",
            lambda name: {"inference_pool": {"resource_version": name}},
        ),
    ],
)
async def test_names_too_long_to_be_remembered_are_refused(
    served: ServedPicker, field: str, request_of: Callable[[str], dict[str, object]]
) -> None:
    """With the field and the bound; the id is not used up, and a name of the bound passes."""
    bound = SMALL.identifier_bytes_max
    pushed = await served.push(PROMPT)
    too_long = "é" * (bound // 2) + "x"
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.pick(pushed.stream_id, **request_of(too_long))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == (
        f"Pick: {field}: '{bound + 1} bytes' is not allowed; "
        f"expected at most {bound} bytes of UTF-8"
    )
    picked = await served.pick(pushed.stream_id, **request_of("x" * bound))
    assert picked.outcome in {pb.PickResponse.OK, pb.PickResponse.NO_WORKERS}


async def test_an_id_that_nobody_has_is_not_found(served: ServedPicker) -> None:
    """B31, F82, F83: never given out, or by another instance, which is the same."""
    async with refused(NOT_FOUND):
        await served.pick(12_345)
    async with serve_picker(clock=ManualClock(1)) as other:
        pushed = await other.push(PROMPT)
    async with refused(NOT_FOUND):
        await served.pick(pushed.stream_id)


async def test_an_open_upload_cannot_be_picked(served: ServedPicker) -> None:
    """B32: it has no id before its end."""
    call = served.stub.PushBody()
    await call.write(pb.BodyChunk(chunk=PROMPT))
    await until(lambda: served.buffered_bytes > 0)
    (body,) = served.picker.plane.bodies._bodies.values()
    assert body.stream_id == 0
    for guess in (1, body.number):
        async with refused(NOT_FOUND):
            await served.pick(guess)
    call.cancel()


@pytest.mark.parametrize("body", [PROMPT, b"", b'{"model":"unheard-of"}'])
async def test_any_answer_uses_the_id_up(served: ServedPicker, body: bytes) -> None:
    """B33, B34: a second Pick is FAILED_PRECONDITION, whatever the first one said."""
    pushed = await served.push(body)
    await served.pick(pushed.stream_id)
    async with refused(USED):
        await served.pick(pushed.stream_id)


async def test_a_rejection_uses_the_id_up() -> None:
    """B34: a policy's no is an answer, too."""
    chooser = Scripted(Refusal(outcome=Outcome.POLICY_REJECTED, reason="rule=x"))
    async with serve_picker(clock=ManualClock(1), chooser=chooser) as served:
        pushed = await served.push(PROMPT)
        picked = await served.pick(pushed.stream_id)
        assert picked.outcome == pb.PickResponse.POLICY_REJECTED
        assert picked.reason == "rule=x"
        assert not picked.WhichOneof("destination")
        assert (picked.response_id, picked.body_total_bytes) == (0, 0)
        async with refused(USED):
            await served.pick(pushed.stream_id)


async def test_of_two_picks_at_once_one_wins(served: ServedPicker) -> None:
    """B35: the other one is FAILED_PRECONDITION."""
    pushed = await served.push(PROMPT)
    answers = await asyncio.gather(
        *(served.pick(pushed.stream_id) for _ in range(2)), return_exceptions=True
    )
    errors = [answer for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]
    assert [error.code() for error in errors] == [USED]


async def test_a_pick_that_is_given_up_leaves_nothing() -> None:
    """B36: its body is used up and gone."""
    chooser = Scripted(local())
    chooser.may_answer.clear()
    async with serve_picker(clock=ManualClock(1), chooser=chooser) as served:
        pushed = await served.push(PROMPT)
        call = served.stub.Pick(pb.PickRequest(body_stream_id=pushed.stream_id))
        await until(lambda: bool(chooser.questions))
        call.cancel()
        await until(lambda: served.buffered_bytes == 0)
        async with refused(USED):
            await served.pick(pushed.stream_id)
        assert len(served.picker.plane.decisions) == 0


async def test_what_comes_too_late_for_its_caller_leaves_nothing() -> None:
    """B36: nobody hears where it goes, so nobody would say how that ended."""
    clock, chooser = ManualClock(1), Scripted(local())
    chooser.may_answer.clear()
    async with serve_picker(clock=clock, chooser=chooser, ticks=False) as served:
        pushed = await served.push(PROMPT)
        request = pb.PickRequest(body_stream_id=pushed.stream_id)
        call = served.stub.Pick(request, timeout=60)
        await until(lambda: bool(chooser.questions))
        clock.advance_ns(61 * NS_PER_S)
        chooser.may_answer.set()
        picked = await call
        assert not await served.abort(picked.response_id)
        plane = served.picker.plane
        assert (len(plane.decisions), plane.decisions.in_flight.total) == (0, 0)
        assert served.buffered_bytes == 0


async def test_ids_expire() -> None:
    """B37: a body that was never picked, and the memory of one that was."""
    clock = ManualClock(1)
    async with serve_picker(clock=clock) as served:
        late = await served.push(PROMPT)
        used = await served.push(PROMPT)
        await served.pick(used.stream_id)
        clock.advance_ns(SMALL.body_ttl_ns)
        async with refused(NOT_FOUND):
            await served.pick(late.stream_id)
        async with refused(USED):
            await served.pick(used.stream_id)
        clock.advance_ns(SMALL.decision_ttl_ns)
        async with refused(NOT_FOUND):
            await served.pick(used.stream_id)


async def test_a_choice_names_one_destination(served: ServedPicker) -> None:
    """B38: with an id, the length, and the model as the client wrote it."""
    picked = await served.push_and_pick(b'{"model":"alias","prompt":"x"}')
    assert picked.outcome == OK
    assert picked.WhichOneof("destination") == "local"
    assert picked.local.endpoint == "10.0.0.3:8000"
    assert picked.response_id
    assert picked.body_total_bytes == len(b'{"model":"a/longer-name","prompt":"x"}')
    assert picked.requested_model == "alias"


async def test_a_degraded_choice_says_what_was_missing(served: ServedPicker) -> None:
    """B39, F52: a body of no known shape is routed by its model."""
    picked = await served.push_and_pick(b'{"model":"m","something":1}')
    assert picked.outcome == pb.PickResponse.DEGRADED
    assert picked.WhichOneof("destination") == "local"
    assert picked.response_id
    assert "degraded=shape" in picked.reason


async def test_nobody_serves_an_unknown_model(served: ServedPicker) -> None:
    """B40, B49: NO_WORKERS, and gRPC is OK; there is no id and no body."""
    picked = await served.push_and_pick(b'{"model":"unheard-of"}')
    assert picked.outcome == pb.PickResponse.NO_WORKERS
    assert picked.reason == "model=unknown"
    assert picked.requested_model == "unheard-of"
    assert not picked.WhichOneof("destination")
    assert (picked.response_id, picked.body_total_bytes) == (0, 0)
    assert served.buffered_bytes == 0


@pytest.mark.parametrize(
    ("body", "flaw"),
    [
        (b"hello", "malformed"),
        (b"[]", "not_an_object"),
        (b"{}", "model_missing"),
        (b'{"prompt":"x"}', "model_missing"),
        (b'{"model":5}', "model_not_text"),
        (b'{"model":"m","messages":"x"}', "messages_not_a_list"),
        (PROMPT[:-3], "malformed"),
        (b'{"model":"\xff"}', "not_utf8"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b',"model":"m"}', "too_deep"),
        (b'{"model":"m","n":' + b"7" * 5_000 + b"}", "number_too_long"),
        (b'{"model":"m","n":NaN}', "malformed"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(len(value)),
)
async def test_what_is_no_request_is_refused_with_a_reason(
    served: ServedPicker, body: bytes, flaw: str
) -> None:
    """B41: BAD_REQUEST for each, never a failure; nothing of the body comes back."""
    picked = await served.push_and_pick(body)
    assert picked.outcome == BAD
    assert picked.reason.split(";")[0] == f"body={flaw}"
    assert (picked.response_id, picked.body_total_bytes) == (0, 0)
    assert served.buffered_bytes == 0
    assert (await served.push_and_pick()).outcome == OK


async def test_a_mark_in_front_is_kept(served: ServedPicker) -> None:
    """B42: and it counts."""
    body = b"\xef\xbb\xbf" + b'{"model":"alias","prompt":"x"}'
    picked = await served.push_and_pick(body)
    pulled = await served.pull(picked.response_id)
    assert picked.body_total_bytes == len(pulled)
    assert pulled == body.replace(b"alias", b"a/longer-name")


async def test_the_last_of_several_models_counts_and_all_are_rewritten(
    served: ServedPicker,
) -> None:
    """B43: no parser can see another one afterwards."""
    body = b'{"model":"unheard-of", "x":{"model":"inner"}, "\\u006dodel" : "alias"}'
    picked = await served.push_and_pick(body)
    assert picked.requested_model == "alias"
    expected = b'{"model":"N", "x":{"model":"inner"}, "\\u006dodel" : "N"}'
    assert await served.pull(picked.response_id) == expected.replace(b"N", b"a/longer-name")


async def test_without_a_pool_everything_is_served(served: ServedPicker) -> None:
    """B44, B45: a pool that nobody knows is NO_WORKERS with a reason, not an error."""
    assert (await served.push_and_pick()).outcome == OK
    pool = pb.InferencePoolRef(namespace="", name="p", resource_version="9")
    picked = await served.push_and_pick(inference_pool=pool)
    assert picked.outcome == pb.PickResponse.NO_WORKERS
    assert picked.reason == "pool=unknown"


async def test_the_question_holds_what_the_caller_said() -> None:
    """B46 to B48, G85: pool, tenant and class arrive as sent; unknown classes are INTERACTIVE."""
    chooser = Scripted(local())
    async with serve_picker(clock=ManualClock(1), chooser=chooser) as served:
        pool = pb.InferencePoolRef(namespace="n", name="p", resource_version="9")
        for qos in (0, 1, 2, 7):
            await served.push_and_pick(
                inference_pool=pool, qos_class=qos, client_request_id="same", tenant=""
            )
        await served.push_and_pick(tenant="acme")
    first, *_, last = chooser.questions
    names = [question.qos.value for question in chooser.questions[:4]]
    assert names == ["INTERACTIVE", "BATCH", "DEFERRABLE", "INTERACTIVE"]
    assert first.pool is not None
    assert (first.pool.namespace, first.pool.name, first.pool.resource_version) == ("n", "p", "9")
    assert first.tenant == ""
    assert first.client_request_id == "same"
    kept = [question.top_level is not None for question in chooser.questions[:4]]
    assert kept == [True, True, False, True]  # what waits keeps its bytes once
    assert last.pool is None
    assert last.tenant == "acme"


def test_response_ids_are_unique_and_never_zero() -> None:
    """B49: zeros and repetitions are drawn again."""
    numbers = iter([0, 7, 0, 7, 7, 9, 0, 9, 11])
    parts = PickParts(settings=SMALL, clock=ManualClock(1), new_id=lambda: next(numbers))
    plane = PickPlane(parts)
    streams = [plane.complete(plane.open_upload(None)) for _ in range(2)]
    assert streams == [7, 9]
    assert plane.complete(plane.open_upload(None)) == 11


async def test_a_provider_is_a_destination() -> None:
    """H88: with its backend and its path, and the body in its terms."""
    destination = ProviderDestination(namespace="n", backend="b", path="/v1/chat?x=1")
    chooser = Scripted(local(destination=destination, target_model="vendor/name"))
    async with serve_picker(clock=ManualClock(1), chooser=chooser) as served:
        picked = await served.push_and_pick()
        assert picked.WhichOneof("destination") == "provider"
        assert picked.provider.backend_ref == pb.BackendRef(namespace="n", name="b")
        assert picked.provider.path == "/v1/chat?x=1"
        assert await served.pull(picked.response_id) == PROMPT.replace(b'"m"', b'"vendor/name"')


async def test_requests_are_spread_over_idle_endpoints(served: ServedPicker) -> None:
    """F49: the least busy one, and of equals the one that waited longest."""
    endpoints = [(await served.push_and_pick()).local.endpoint for _ in range(4)]
    assert endpoints == ["10.0.0.1:8000", "10.0.0.2:8000"] * 2


async def test_a_message_that_does_not_parse_is_refused(served: ServedPicker) -> None:
    """A text that is not UTF-8 is INVALID_ARGUMENT."""
    pick = served.channel.unary_unary("/kinference.v1.Picker/Pick")
    async with refused(grpc.StatusCode.INVALID_ARGUMENT):
        await pick(b"\x2a\x01\xff")


HOSTILE: dict[str, Callable[[], bytes]] = {
    "strings": lambda: b'{"a":[' + b'"",' * (10 * MIB) + b'""],"model":"m"}',
    "brackets": lambda: b'{"a":[' + b"[],{}," * (5 * MIB) + b'0],"model":"m"}',
    "escapes": lambda: b'{"prompt":"' + b'\\"' * (15 * MIB) + b'","model":"m"}',
    "nesting": lambda: b"[" * (32 * MIB - 1),
    "models": lambda: b'{"a":[' + b'{"model":1},' * MIB + b'0],"model":"m"}',
}


@pytest.mark.long
@pytest.mark.parametrize("name", HOSTILE)
async def test_health_is_answered_while_a_large_body_is_read(name: str) -> None:
    """Whatever 32 MiB hold, others wait no longer than 250 ms."""
    body = HOSTILE[name]()
    settings = SMALL.__class__(bind_address=SMALL.bind_address, endpoints=SMALL.endpoints)
    async with serve_picker(settings) as served:
        chunks = [body[start : start + MIB] for start in range(0, len(body), MIB)]
        pushed = await served.push(*chunks)
        picking = asyncio.ensure_future(served.pick(pushed.stream_id))
        check = served.channel.unary_unary("/grpc.health.v1.Health/Check")
        clock = asyncio.get_running_loop().time
        waits = []
        while not picking.done():
            before = clock()
            await check(b"")
            waits.append(clock() - before)
        assert (await picking).outcome in {OK, BAD, pb.PickResponse.DEGRADED}
    assert max(waits) < 250 * NS_PER_MS / 1e9


async def test_large_bodies_are_read_elsewhere(served: ServedPicker) -> None:
    """The answer, and the reason of a refusal, are the same as for small ones."""
    body = [b'{"model":"m","prompt":"', b"x" * MIB, b'"}']
    picked = await served.push_and_pick(*body)
    assert picked.outcome == OK
    assert await served.pull(picked.response_id) == b"".join(body)
    broken = await served.push_and_pick(*body[:2])
    assert broken.outcome == BAD
    assert broken.reason.startswith("body=malformed")
