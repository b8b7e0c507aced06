"""What a Pick costs without gRPC, and what gRPC costs without a Pick.

Workload: bodies of 10 KB, two plugins, eight endpoints, debug records on, as in ``picker``; the use
case is called as the handler calls it, in this process. Beside it, one call after the other of a
method that does nothing, to a server in a process of its own. Budget: about 10 s.
"""

import asyncio
from collections.abc import Iterator
from statistics import median
from time import process_time_ns

import grpc

from benchmarks.measure import NS_PER_MS, require
from benchmarks.messages import EMPTY_CALL, as_bytes
from benchmarks.options import Options
from benchmarks.picker_client import body_of
from benchmarks.picker_server import made_picker
from benchmarks.row import Row
from benchmarks.serving import serving
from inferencecache.app.picker import Picker
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.picker.bodies import Rope
from inferencecache.picker.choice import Outcome
from inferencecache.picker.decisions import AbortReport
from inferencecache.picker.request import parse_body
from inferencecache.settings.picker import PickerParseSettings
from inferencecache.transport.picker_pick import PickRunner
from inferencecache.transport.picker_reader import BodyReader
from inferencecache.transport.structured_log import StructuredLog
from inferencecache.transport.system_clock import SystemClock

BODY_BYTES = 10_240
_ROUNDS = 9
_TTL_MS = 60_000


def rows(options: Options) -> Iterator[Row]:
    """Yield the cost of either."""
    count = 100 if options.quick else 300
    picks_ms = asyncio.run(_picks(count))
    yield Row(
        what="... the same Pick without gRPC, CPU",
        unit="ms",
        value=median(picks_ms),
        note=f"least of {_ROUNDS} rounds {min(picks_ms):.3f}; reading the body {_reading_ms():.3f}",
    )
    with serving(1_000) as server:
        calls_ms = []
        with grpc.insecure_channel(server.target) as channel:
            call = channel.unary_unary(EMPTY_CALL, as_bytes, as_bytes)
            call(b"")
            for _ in range(_ROUNDS):
                started_ns = server.cpu_ns()
                for _ in range(count):
                    call(b"")
                calls_ms.append((server.cpu_ns() - started_ns) / count / NS_PER_MS)
    yield Row(
        what="... a call that does nothing, one after the other, CPU of the server",
        unit="ms",
        value=median(calls_ms),
        note=f"least of {_ROUNDS} rounds {min(calls_ms):.3f}",
    )


async def _picks(count: int) -> list[float]:
    picker, body = made_picker(_TTL_MS), body_of(BODY_BYTES)
    runner = _runner(picker)
    costs_ms = []
    for _ in range(_ROUNDS):
        ids = [_pushed(picker, body) for _ in range(count)]
        started_ns = process_time_ns()
        answers = [await runner.run(pb.PickRequest(body_stream_id=number), {}) for number in ids]
        costs_ms.append((process_time_ns() - started_ns) / count / NS_PER_MS)
        for answer in answers:
            require(answer.outcome is Outcome.OK, "every Pick finds a destination")
            picker.plane.abort(answer.response_id, AbortReport(reason="", detail=""))
    await picker.stop(0)
    return costs_ms


def _pushed(picker: Picker, body: bytes) -> int:
    upload = picker.plane.open_upload(None)
    picker.plane.append(upload, body)
    return picker.plane.complete(upload)


def _runner(picker: Picker) -> PickRunner:
    chooser = picker.fleet.chooser
    return PickRunner(
        plane=picker.plane,
        reader=BodyReader(PickerParseSettings()),
        chooser=chooser,
        may_lack_model=lambda: chooser.may_lack_model,
        records=picker.records,
        metrics=picker.metrics,
        clock=SystemClock(),
        log=StructuredLog(),
    )


def _reading_ms() -> float:
    """Return what parsing a body costs."""
    content, settings = Rope([body_of(BODY_BYTES)]), PickerParseSettings()
    costs_ms = []
    for _ in range(_ROUNDS):
        started_ns = process_time_ns()
        for _ in range(100):
            parse_body(content.join(), settings)
        costs_ms.append((process_time_ns() - started_ns) / 100 / NS_PER_MS)
    return median(costs_ms)
