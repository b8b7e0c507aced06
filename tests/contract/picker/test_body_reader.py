"""Large bodies are read by a process that may die."""

import asyncio
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from typing import Any

import pytest
from served_picker import serve_picker, until

from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.picker.bodies import Rope
from inferencecache.settings.picker import PickerParseSettings
from inferencecache.transport import picker_reader
from inferencecache.transport.picker_reader import BodyReader

DEAD = 9
BODY = Rope([b'{"model":"m","prompt":"', b"x" * 5_000, b'"}'])


def die(*_: object, **__: object) -> None:
    """End the process that reads."""
    os._exit(DEAD)


def processes(reader: BodyReader) -> list[BaseProcess]:
    """Return the processes of *reader*."""
    assert reader._processes is not None
    return list(reader._processes._processes.values())


def stop_processes(reader: BodyReader) -> None:
    """Let the processes of *reader* hang."""
    for process in processes(reader):
        assert process.pid is not None
        os.kill(process.pid, signal.SIGSTOP)


def kill_processes(reader: BodyReader) -> None:
    """End the processes of *reader* as the system does when memory runs out."""
    for process in processes(reader):
        process.kill()
        process.join()


async def test_a_reader_that_dies_is_replaced() -> None:
    """Nobody's body has to do with that."""
    reader = BodyReader(PickerParseSettings(inline_bytes_max=100))
    try:
        assert (await reader.read(BODY)).request.model == "m"
        kill_processes(reader)
        assert (await reader.read(BODY)).request.model == "m"
    finally:
        reader.close()


async def test_several_that_met_a_dead_reader_share_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever learns of it late does not end the process that others use by now."""
    made: list[ProcessPoolExecutor] = []

    def make(*args: Any, **kwargs: Any) -> ProcessPoolExecutor:
        made.append(ProcessPoolExecutor(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(picker_reader, "ProcessPoolExecutor", make)
    reader = BodyReader(PickerParseSettings(inline_bytes_max=100, processes_max=3))
    try:
        await reader.read(BODY)
        stop_processes(reader)
        reading = [asyncio.create_task(reader.read(BODY)) for _ in range(3)]
        await asyncio.sleep(0)  # all wait for an answer of a process now
        kill_processes(reader)
        assert [(await read).request.model for read in reading] == ["m"] * 3
        assert len(made) == 2
    finally:
        reader.close()


async def test_a_body_that_kills_its_readers_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets a second reader, and no third; the next body has one again."""
    reader = BodyReader(PickerParseSettings(inline_bytes_max=100))
    try:
        with monkeypatch.context() as patched:
            patched.setattr(picker_reader, "parse_body", die)
            with pytest.raises(BrokenProcessPool):
                await reader.read(BODY)
        assert (await reader.read(BODY)).request.model == "m"
    finally:
        reader.close()


async def test_picks_go_on_when_the_reader_dies() -> None:
    """Those of bodies that came before it died, while it reads, and afterwards."""
    body = b'{"model":"m","prompt":"x"}'
    async with serve_picker(parse=PickerParseSettings(inline_bytes_max=0)) as served:
        assert (await served.push_and_pick(body)).outcome == pb.PickResponse.OK
        before = await served.push(body)
        kill_processes(served.picker._reader)
        picked = await served.pick(before.stream_id)
        assert picked.outcome == pb.PickResponse.OK
        assert await served.pull(picked.response_id) == body

        stop_processes(served.picker._reader)
        picking = [asyncio.create_task(served.push_and_pick(body)) for _ in range(3)]
        await until(served.picker._reader._turn.locked)
        kill_processes(served.picker._reader)
        assert [(await pick).outcome for pick in picking] == [pb.PickResponse.OK] * 3
        assert not served.recorder.failures


async def test_a_body_that_takes_long_is_read_elsewhere() -> None:
    """However short it is: what counts is how much there is to look at."""
    reader = BodyReader(PickerParseSettings())
    tools = b",".join([b'{"model":1}'] * 1_001)
    try:
        await reader.read(Rope([b'{"model":"m"}']))
        assert reader._processes is None
        await reader.read(Rope([b'{"model":"m","tools":[', tools, b"]}"]))
        assert reader._processes is not None
    finally:
        reader.close()
