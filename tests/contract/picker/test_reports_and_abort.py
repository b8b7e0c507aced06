"""Reports and Abort: what counts, once, and never as an error (lists D, E)."""

import asyncio
from dataclasses import replace

import pytest
from reports import ABORT, FINAL
from served_picker import MIB, PROMPT, SMALL, ServedPicker, serve_picker, until

from inferencecache.clock import ManualClock
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.picker.choice import Choice, LocalDestination, Question
from inferencecache.picker.decisions import FinalTokenReport, usable
from inferencecache.picker.request import Api, InferenceRequest
from inferencecache.service.pick import PickParts, PickPlane
from inferencecache.transport.random_ids import random_id


def in_flight(served: ServedPicker) -> int:
    """Return the requests in flight."""
    return served.picker.plane.decisions.in_flight.total


async def test_first_then_final(served: ServedPicker) -> None:
    """D63: both count; the request is in flight until the second."""
    picked = await served.push_and_pick()
    assert in_flight(served) == 1
    assert await served.first(picked.response_id, observed_ttft_ms=50, upstream_status=200)
    assert in_flight(served) == 1
    assert await served.final(picked.response_id, model="m", prompt_tokens=3)
    assert in_flight(served) == 0


async def test_order_and_repetition_do_not_matter(served: ServedPicker) -> None:
    """D64: the first of each kind counts, later ones say so."""
    picked = await served.push_and_pick()
    name = picked.response_id
    assert await served.final(name)
    assert not await served.final(name)
    assert await served.first(name)
    assert not await served.first(name)
    assert in_flight(served) == 0


@pytest.mark.parametrize("response_id", [0, 12_345])
async def test_unknown_ids_are_no_error(served: ServedPicker, response_id: int) -> None:
    """D65, E71: gRPC is OK, and nothing is acknowledged or released."""
    assert not await served.first(response_id)
    assert not await served.final(response_id)
    assert not await served.abort(response_id)


async def test_expired_ids_are_no_error() -> None:
    """D65: the time of a decision is over; the first token starts it anew."""
    clock = ManualClock(1)
    async with serve_picker(clock=clock) as served:
        silent, alive = [(await served.push_and_pick()).response_id for _ in range(2)]
        clock.advance_ns(SMALL.decision_ttl_ns - 1)
        assert await served.first(alive)
        clock.advance_ns(1)
        assert not await served.final(silent)
        assert await served.final(alive)
        assert in_flight(served) == 0


async def test_a_final_report_takes_no_body_away(served: ServedPicker) -> None:
    """D64: calls of a request may overtake each other."""
    picked = await served.push_and_pick()
    assert await served.final(picked.response_id)
    assert len(await served.pull(picked.response_id)) == picked.body_total_bytes > 0


async def test_only_decisions_that_nobody_has_ended_count_as_expired() -> None:
    """One that has its final report has not been abandoned, however late a first one might come."""
    clock = ManualClock(1)
    async with serve_picker(clock=clock) as served:
        silent, ended = [(await served.push_and_pick()).response_id for _ in range(2)]
        assert await served.final(ended)
        clock.advance_ns(SMALL.decision_ttl_ns)
        assert not await served.first(silent)
        assert served.picker.plane.decisions.expired == 1
        clock.advance_ns(SMALL.ended_ttl_ns - SMALL.decision_ttl_ns)
        assert not await served.first(ended)
        assert (served.picker.plane.decisions.expired, len(served.picker.plane.decisions)) == (1, 0)


@pytest.mark.parametrize("ttft_ms", [0, 2**32 - 1])
async def test_any_time_is_accepted(served: ServedPicker, ttft_ms: int) -> None:
    """D67: what to make of it is the estimator's business."""
    picked = await served.push_and_pick()
    assert await served.first(picked.response_id, observed_ttft_ms=ttft_ms)


@pytest.mark.parametrize(
    ("fields", "flaw"),
    [
        ({}, ""),
        ({"cached_tokens": 0}, ""),
        ({"cached_tokens": 3, "prompt_tokens": 3}, ""),
        ({"cached_tokens": 9, "prompt_tokens": 3}, "cached_tokens"),
        ({"cached_tokens": 9}, "cached_tokens"),
        ({"cached_tokens": 2**32 - 1, "prompt_tokens": 2**32 - 1}, "prompt_tokens"),
        ({"cached_tokens": 2**32 - 1, "prompt_tokens": 3}, "cached_tokens"),
        ({"prompt_tokens": 1_048_576}, ""),
        ({"itl_bucket_layout": 99}, ""),
        ({"itl_bucket_counts": [1] * 15, "itl_bucket_layout": 1}, ""),
        ({"itl_bucket_counts": [1], "itl_bucket_layout": 1}, "itl_length"),
        ({"itl_bucket_counts": [1] * 15, "itl_bucket_layout": 99}, "itl_layout"),
        ({"model": "another one"}, ""),
    ],
    ids=str,
)
async def test_odd_reports_are_acknowledged(
    served: ServedPicker, fields: dict[str, object], flaw: str
) -> None:
    """D68 to D70: what cannot be used is counted and left out; the rest is a report."""
    picked = await served.push_and_pick()
    assert await served.final(picked.response_id, **fields)
    assert not await served.final(picked.response_id, **fields)
    (found,) = [
        family.numbers
        for family in served.picker.metrics.families()
        if family.spec.name == "inferencecache_picker_reports_bad_total"
    ]
    assert found == ({(flaw,): 1} if flaw else {})


def test_only_the_usable_part_is_passed_on() -> None:
    """D68, D69: absent stays absent, 0 is a miss, too much is all or nothing; odd gaps are none."""
    plain = FinalTokenReport(
        model="m",
        prompt_tokens=3,
        completion_tokens=1,
        cached_tokens=None,
        itl_bucket_counts=(1,) * 15,
        itl_bucket_layout=1,
    )
    assert usable(plain) == (plain, ())
    assert usable(replace(plain, cached_tokens=2), 3)[0].cached_tokens == 2
    absurd = usable(replace(plain, cached_tokens=2), 2)[0]
    assert (absurd.prompt_tokens, absurd.cached_tokens, absurd.completion_tokens) == (0, None, 1)
    for given, used in ((0, 0), (3, 3), (9, 3)):
        assert usable(replace(plain, cached_tokens=given))[0].cached_tokens == used
    unknown = replace(plain, prompt_tokens=0)  # nobody has counted it
    for given, used in ((None, None), (0, 0), (9, None)):
        assert usable(replace(unknown, cached_tokens=given))[0].cached_tokens == used
    for odd in (
        replace(plain, itl_bucket_counts=(1,) * 14),
        replace(plain, itl_bucket_layout=2),
    ):
        assert usable(odd)[0].itl_bucket_counts == ()


async def test_an_abort_releases_once(served: ServedPicker) -> None:
    """E71: the body and the request in flight go at once; a second one finds nothing."""
    picked = await served.push_and_pick()
    assert await served.abort(picked.response_id)
    assert served.buffered_bytes == 0
    assert in_flight(served) == 0
    assert not await served.abort(picked.response_id)
    assert not await served.first(picked.response_id)


async def test_an_abort_after_the_pull_ends_the_request(served: ServedPicker) -> None:
    """E72: there is no body, but the request was in flight; after its end there is nothing."""
    pulled = await served.push_and_pick()
    await served.pull(pulled.response_id)
    assert await served.abort(pulled.response_id)
    ended = await served.push_and_pick()
    await served.pull(ended.response_id)
    await until(lambda: served.buffered_bytes == 0)
    await served.final(ended.response_id)
    assert not await served.abort(ended.response_id)


def test_an_abort_at_the_moment_a_body_expires_releases_nothing() -> None:
    """E72: its time is over then, whether or not anybody has looked."""
    clock = ManualClock(1)
    plane = PickPlane(PickParts(settings=SMALL, clock=clock, new_id=random_id))
    body = plane.begin(plane.complete(plane.open_upload(None)))
    request = InferenceRequest(api=Api.UNKNOWN, model="m", model_names=("m",), model_spans=())
    question = Question(request=request, content=body.content)
    choice = Choice(destination=LocalDestination(endpoint="a:1"), target_model="m")
    name = plane.settle(body, question, choice).response_id
    clock.advance_ns(SMALL.unpulled_ttl_ns)
    assert plane.final_token(name, FINAL)
    assert not plane.abort(name, ABORT)


@pytest.mark.parametrize("reason", [0, 1, 2, 3, 4, 99])
async def test_any_reason_releases(served: ServedPicker, reason: int) -> None:
    """E74, E75: what else a reason means, it means beside that."""
    picked = await served.push_and_pick()
    assert await served.abort(picked.response_id, reason=reason)
    assert in_flight(served) == 0


async def test_an_abort_and_a_final_report_at_once(served: ServedPicker) -> None:
    """E76: the request ends exactly once, whichever comes first."""
    for _ in range(50):
        picked = await served.push_and_pick()
        name = picked.response_id
        await asyncio.gather(served.abort(name), served.final(name), served.abort(name))
        assert in_flight(served) == 0


async def test_a_long_detail_is_cut(served: ServedPicker) -> None:
    """E77: the log does not grow by a mebibyte."""
    picked = await served.push_and_pick()
    assert await served.abort(picked.response_id, detail="d" * MIB)
    event, fields = served.recorder.lines[-1]
    assert event == "abort"
    assert fields["detail"] == "d" * 256


async def test_an_endpoint_that_comes_back_is_not_idle_for_ever(served: ServedPicker) -> None:
    """F53: three picks and three reports leave exactly nothing in flight."""
    names = [(await served.push_and_pick(PROMPT)).response_id for _ in range(3)]
    assert in_flight(served) == 3
    assert [await served.final(name) for name in names] == [True] * 3
    assert dict(served.picker.plane.decisions.in_flight) == {}


def test_the_wire_name_is_the_published_one() -> None:
    """Gateways call kinference.v1.Picker, wherever its Python code lies."""
    assert pb.DESCRIPTOR.package == "kinference.v1"
    assert pb.DESCRIPTOR.services_by_name["Picker"].full_name == "kinference.v1.Picker"
