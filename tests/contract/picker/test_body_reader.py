"""Large bodies are read by a process that may die."""

from concurrent.futures.process import BrokenProcessPool

import pytest

from inferencecache.picker.bodies import Rope
from inferencecache.settings.picker import PickerParseSettings
from inferencecache.transport.picker_reader import BodyReader

BODY = Rope([b'{"model":"m","prompt":"', b"x" * 5_000, b'"}'])


async def test_a_reader_that_dies_is_replaced() -> None:
    """One body fails, the next one is read."""
    reader = BodyReader(PickerParseSettings(inline_bytes_max=100))
    try:
        assert (await reader.read(BODY)).model == "m"
        assert reader._processes is not None
        for process in reader._processes._processes.values():
            process.kill()
            process.join()
        with pytest.raises(BrokenProcessPool):
            await reader.read(BODY)
        assert (await reader.read(BODY)).model == "m"
    finally:
        reader.close()


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
