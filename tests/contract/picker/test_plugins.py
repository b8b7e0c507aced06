"""Plugins behind a real gRPC port: headers, denials, failures, and the life of a response."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import grpc
import pytest
from pipeline_rig import (
    Following,
    Making,
    Noted,
    Scoring,
    director,
    key,
    pipeline,
    raising,
    task_runner,
)
from served_picker import SMALL, ServedPicker, refused, serve_picker, until

from inferencecache.clock import ManualClock
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.picker.pipeline import DeniedError, Request, TerminationCause, Usage

ONE, TWO = "10.0.0.1:8000", "10.0.0.2:8000"


class Seeing(Following):
    """Keeps the requests it sees first."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Request] = []

    def pre_admit(self, request: Request) -> None:
        """Take note."""
        self.seen.append(request)


def served(
    noted: Noted | None = None, clock: ManualClock | None = None, **plugins: object
) -> AbstractAsyncContextManager[ServedPicker]:
    """Serve a picker with *plugins*."""
    built = director(pipeline(**plugins), noted, task_runner())
    return serve_picker(SMALL, director=built, clock=clock)


async def test_metadata_of_a_pick_are_the_headers_of_its_request() -> None:
    """Without what is about the call, or secret; twice the same name is one value."""
    plugin = Seeing()
    async with served(all=plugin) as picker:
        pushed = await picker.push(b'{"model": "m", "prompt": "x"}')
        metadata = (
            ("x-session-id", "s1"),
            ("x-many", "a"),
            ("x-many", "b"),
            ("authorization", "Bearer secret"),
            ("x-bytes-bin", b"\x00"),
        )
        request = pb.PickRequest(
            body_stream_id=pushed.stream_id,
            tenant="acme",
            client_request_id="r-1",
            qos_class=pb.PickRequest.BATCH,
        )
        await picker.stub.Pick(request, metadata=metadata)
    (seen,) = plugin.seen
    assert seen.headers == {"x-session-id": "s1", "x-many": "a,b"}
    assert (seen.tenant, seen.fairness_id, seen.request_id) == ("acme", "acme", "r-1")
    assert (seen.qos, seen.requested_model) == ("BATCH", "m")


@pytest.mark.parametrize("hook", ["pre_admit", "admit"])
async def test_a_denial_is_policy_rejected_with_its_reason(hook: str) -> None:
    """No destination, no id, and the body is gone."""
    async with served(door=raising(hook, DeniedError("too warm"))) as picker:
        answer = await picker.push_and_pick()
        assert answer.outcome == pb.PickResponse.POLICY_REJECTED
        assert answer.reason == "denied_by=door;denial=too warm"
        assert (answer.response_id, answer.WhichOneof("destination")) == (0, None)
        assert picker.buffered_bytes == 0


async def test_a_failure_is_degraded_and_named() -> None:
    """The other scorer decides."""
    maker = Making(key("a"))
    maker.produce = raising("produce").produce
    noted = Noted()
    plugins = {"maker": maker, "bad": raising("score"), "good": Scoring(**{TWO: 1.0})}
    async with served(noted, **plugins) as picker:
        answer = await picker.push_and_pick()
        assert answer.outcome == pb.PickResponse.DEGRADED
        assert answer.local.endpoint == TWO
        assert answer.reason.endswith(";degraded=maker:raised,bad:raised")
    assert [plugin for plugin, _, _ in noted.failures] == ["maker", "bad"]


async def test_an_endpoint_that_pre_request_refuses_is_passed_over() -> None:
    """The next best takes the request; if that is refused as well, nobody does."""
    picky = raising("pre_request")
    refuses: set[str] = {TWO}
    picky.pre_request = lambda _, result: 1 / (result.endpoint.name not in refuses)
    async with served(picky=picky, good=Scoring(**{TWO: 1.0})) as picker:
        answer = await picker.push_and_pick()
        assert answer.local.endpoint == ONE
        assert answer.outcome == pb.PickResponse.DEGRADED
        refuses.add(ONE)
        answer = await picker.push_and_pick()
        assert answer.outcome == pb.PickResponse.NO_WORKERS
        assert answer.reason == "pre_request=picky"


async def test_reports_are_the_life_of_a_response() -> None:
    """First token, final token; a repetition is nothing new."""
    plugin = Following()
    async with served(all=plugin) as picker:
        answer = await picker.push_and_pick()
        for _ in range(2):
            await picker.first(answer.response_id, observed_ttft_ms=180, upstream_status=200)
        for _ in range(2):
            await picker.final(
                answer.response_id, model="m", prompt_tokens=5, completion_tokens=2, cached_tokens=4
            )
    assert [header.status for header in plugin.headers] == [200]
    assert [(body.start_of_stream, body.end_of_stream) for body in plugin.bodies] == [
        (True, False),
        (False, True),
    ]
    assert plugin.bodies[1].usage == Usage(prompt_tokens=5, completion_tokens=2, cached_tokens=4)


async def end_by_abort(picker: ServedPicker, response_id: int, _clock: ManualClock) -> None:
    """Abort."""
    await picker.abort(response_id, reason=pb.AbortRequest.PULL_FAILED)


async def end_by_time(_picker: ServedPicker, _response_id: int, clock: ManualClock) -> None:
    """Let the decision's time pass."""
    clock.advance_ns(SMALL.decision_ttl_ns)


async def end_with_server(picker: ServedPicker, _response_id: int, _clock: ManualClock) -> None:
    """Stop the server."""
    await picker.picker.stop(0)


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        (end_by_abort, TerminationCause.ABORTED),
        (end_by_time, TerminationCause.EXPIRED),
        (end_with_server, TerminationCause.STOPPED),
    ],
)
async def test_every_other_end_has_its_cause(
    end: Callable[[ServedPicker, int, ManualClock], Awaitable[None]], cause: TerminationCause
) -> None:
    """Once, also when the server stops after that."""
    plugin, clock = Following(), ManualClock(1)
    async with served(clock=clock, all=plugin) as picker:
        answer = await picker.push_and_pick()
        await end(picker, answer.response_id, clock)
        await until(lambda: bool(plugin.bodies))
    assert [(body.end_of_stream, body.termination) for body in plugin.bodies] == [(True, cause)]


async def test_a_body_that_is_gone_before_the_choice_withdraws_it() -> None:
    """The Pick is NOT_FOUND, and what PreRequest noted has its end."""
    plugin, clock = Following(), ManualClock(1)
    slow = Making(key("a"))

    async with served(clock=clock, slow=slow, all=plugin) as picker:

        async def produce(*arguments: object) -> object:
            for body in list(picker.picker.plane.bodies._bodies.values()):
                picker.picker.plane.bodies.release(body)
            return await Making.produce(slow, *arguments)

        slow.produce = produce
        async with refused(grpc.StatusCode.NOT_FOUND):
            await picker.push_and_pick()
    assert [body.termination for body in plugin.bodies] == [TerminationCause.WITHDRAWN]
    assert len(plugin.requests) == 1


async def test_a_pick_whose_caller_leaves_while_producers_work_leaves_nothing() -> None:
    """No PreRequest ran, so there is no end; the body is gone."""
    plugin, slow = Following(), Making(key("a"))
    begun, go = asyncio.Event(), asyncio.Event()

    async def produce(*arguments: object) -> object:
        begun.set()
        await go.wait()
        return await Making.produce(slow, *arguments)

    slow.produce = produce
    async with served(slow=slow, all=plugin) as picker:
        pushed = await picker.push(b'{"model": "m", "prompt": "x"}')
        call = picker.stub.Pick(pb.PickRequest(body_stream_id=pushed.stream_id))
        waiting = asyncio.ensure_future(call)
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await until(lambda: picker.buffered_bytes == 0)
    assert (plugin.requests, plugin.bodies) == ([], [])
