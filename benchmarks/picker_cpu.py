"""What Picks cost without gRPC, in this process: the use case is called as the handler calls it.

Workload: as in ``picker_rpc``. Then the prefix signal alone, where nobody has any of the prompt and
where all have some. Then agents that send their whole history, 100,000 tokens in turns of 6 KB: a
history that nobody has seen, the same and one turn more, and that again. Processor time of all
threads; tokenizing is what the tokenizer's own call takes. Budget: 40 s.
"""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time_ns
from typing import Final

from benchmarks.measure import NS_PER_MS, NS_PER_US, require
from benchmarks.options import Options
from benchmarks.picker_made import ENGINES, SignalledPicker, plugged_picker, ten_kb_chat
from benchmarks.picker_rpc import PickKind, kinds
from benchmarks.prompt_texts import Texts, chat_body, write_tokenizer
from benchmarks.row import Bound, Row
from benchmarks.workload import SEED
from inferencecache.app.collector import calm_collector
from inferencecache.app.picker import Picker
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.picker.bodies import Rope
from inferencecache.picker.choice import Outcome, Question
from inferencecache.picker.decisions import AbortReport
from inferencecache.picker.request import parse_body
from inferencecache.service.pick import PickAnswer
from inferencecache.settings.picker import PickerParseSettings
from inferencecache.transport.picker_pick import PickRunner
from inferencecache.transport.picker_reader import BodyReader
from inferencecache.transport.structured_log import StructuredLog
from inferencecache.transport.system_clock import SystemClock
from inferencecache.transport.tokenize_local import LocalTokenizer

_ROUNDS: Final = 9
_TTL_MS: Final = 60_000
_AGENTS: Final = 5
_AGENT_TURNS: Final = 80
_TURN_WORDS: Final = 1_200


def rows(options: Options) -> Iterator[Row]:
    """Yield the costs."""
    with TemporaryDirectory() as directory:
        texts = Texts(random.Random(SEED))
        write_tokenizer(Path(directory), texts)
        yield from asyncio.run(_rows(Path(directory), texts, options))


async def _rows(directory: Path, texts: Texts, options: Options) -> list[Row]:
    plugged, signalled = plugged_picker(_TTL_MS), SignalledPicker(directory, _TTL_MS)
    await signalled.start()
    calm_collector()
    pickers = {"plugged": plugged, "signalled": signalled.picker}
    count = 50 if options.quick else 200
    sense_us = {"nothing warm": await _sense_us(signalled, count)}
    await signalled.warm(ten_kb_chat())
    sense_us["all warm"] = await _sense_us(signalled, count)
    found = [await _picks_row(kind, pickers[kind.server], count) for kind in kinds()]
    for state, costs_us in sense_us.items():
        found.append(
            Row(
                what=f"... the prefix signal of it alone, {ENGINES} engines, {state}, CPU",
                unit="us",
                value=median(costs_us),
                note=f"least of {_ROUNDS} rounds {min(costs_us):.0f}",
            )
        )
    found += await _agent_rows(signalled.picker, texts)
    await plugged.stop(0)
    await signalled.stop()
    return found


async def _picks_row(kind: PickKind, picker: Picker, count: int) -> Row:
    runner, costs_ms = _runner(picker), []
    for _ in range(_ROUNDS):
        ids = [_pushed(picker, kind.body) for _ in range(count)]
        started_ns = process_time_ns()
        answers = [await _picked(runner, number) for number in ids]
        costs_ms.append((process_time_ns() - started_ns) / count / NS_PER_MS)
        for answer in answers:
            picker.plane.abort(answer.response_id, AbortReport(reason="", detail=""))
    return Row(
        what=f"... without gRPC: Pick of {kind.what}, CPU",
        unit="ms",
        value=median(costs_ms),
        note=f"least of {_ROUNDS} rounds {min(costs_ms):.3f}; "
        f"reading the body {_reading_ms(kind.body):.3f}",
    )


async def _sense_us(signalled: SignalledPicker, count: int) -> list[float]:
    """Return the cost of asking for the chat of 10 KB, round by round."""
    body = ten_kb_chat()
    question = Question(request=parse_body(body, PickerParseSettings()), content=Rope([body]))
    (match,) = signalled.picker.fleet.chooser.in_force.index.everything.matches("m")
    candidates = match.rows[0].candidates
    warm = (await signalled.prefix.sense(question, candidates)).matches
    require(len(warm) in {0, ENGINES}, "nobody has any of it, or all have some")
    costs_us = []
    for _ in range(_ROUNDS):
        started_ns = process_time_ns()
        for _ in range(count):
            await signalled.prefix.sense(question, candidates)
        costs_us.append((process_time_ns() - started_ns) / count / NS_PER_US)
    return costs_us


async def _agent_rows(picker: Picker, texts: Texts) -> list[Row]:
    """Return what Picks of long histories cost, with tokenizing and without it."""
    runner, turns = _runner(picker), [texts.of(_TURN_WORDS) for _ in range(_AGENT_TURNS + 1)]
    costs: dict[str, list[tuple[float, float]]] = {}
    for agent in range(_AGENTS):
        said = turns[agent:] + turns[:agent]
        before, after = chat_body(said[:-1]), chat_body(said)
        for what, body in (("new", before), ("one turn more", after), ("seen before", after)):
            number = _pushed(picker, body)
            with _tokenizing() as tokenized_ns:
                started_ns = process_time_ns()
                answer = await _picked(runner, number)
                cost_ns = process_time_ns() - started_ns
            tokens_ms = sum(tokenized_ns) / NS_PER_MS
            require(bool(tokens_ms) == (what != "seen before"), "only what is new is tokenized")
            costs.setdefault(what, []).append((cost_ns / NS_PER_MS - tokens_ms, tokens_ms))
            picker.plane.abort(answer.response_id, AbortReport(reason="", detail=""))
    tokens = answer.reason.partition("matched=")[2].partition(";")[0].rpartition("/")[2]
    return [
        Row(
            what=f"Pick of an agent's history, {what}, without gRPC and tokenizing, CPU",
            unit="ms",
            value=median(rest for rest, _ in pairs),
            bound=Bound.AT_MOST,
            target=3,
            note=f"{int(tokens):,} tokens; tokenizing besides {median(ms for _, ms in pairs):.3g} "
            f"ms; least of {_AGENTS} {min(rest for rest, _ in pairs):.3g}",
        )
        for what, pairs in costs.items()
    ]


@contextmanager
def _tokenizing() -> Iterator[list[int]]:
    """Measure the tokenizer's own calls; yields their times in nanoseconds."""
    times: list[int] = []
    encode = LocalTokenizer.encode

    def timed(self: LocalTokenizer, texts: list[str]) -> list[list[int]]:
        started_ns = process_time_ns()
        encoded = encode(self, texts)
        times.append(process_time_ns() - started_ns)
        return encoded

    LocalTokenizer.encode = timed  # type: ignore[method-assign] # to be timed
    try:
        yield times
    finally:
        LocalTokenizer.encode = encode  # type: ignore[method-assign] # as it was


async def _picked(runner: PickRunner, stream_id: int) -> PickAnswer:
    answer = await runner.run(pb.PickRequest(body_stream_id=stream_id), {})
    require(answer.outcome is Outcome.OK, "every Pick finds a destination, and lacks nothing")
    return answer


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


def _reading_ms(body: bytes) -> float:
    """Return what parsing a body costs."""
    content, settings = Rope([body]), PickerParseSettings()
    costs_ms = []
    for _ in range(_ROUNDS):
        started_ns = process_time_ns()
        for _ in range(100):
            parse_body(content.join(), settings)
        costs_ms.append((process_time_ns() - started_ns) / 100 / NS_PER_MS)
    return median(costs_ms)
