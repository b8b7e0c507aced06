"""Every command on the demo's page does what the page says."""

import asyncio
import re
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from demo_process import Demo, bash, running_demo

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not there")

PAGE = (Path(__file__).parents[2] / "docs" / "demo.md").read_text()
SECTIONS = {
    head.strip(): re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    for head, _, text in (section.partition("\n") for section in PAGE.split("\n## "))
}
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
BEGINNING = "# The demo"
ALIKE = "Two prompts that begin alike"
MANY = "Many at once"
STREAMS = "Streams, and the OpenAI client"
DEATH = "An engine that dies"
KEY = "A wrong key"


class Terminal:
    """The other terminal: runs what the page says, against this demo."""

    def __init__(self, demo: Demo) -> None:
        self._demo = demo
        self._engine = ""

    def _here(self, line: str) -> str:
        """Return *line* with this demo's addresses."""
        control = f"--control-url {self._demo.control}"
        return (
            line.replace("http://127.0.0.1:8091/engines", self._demo.kill)
            .replace("http://127.0.0.1:8081", self._demo.control)
            .replace(
                "inferencecache explain", f"{sys.executable} -m inferencecache explain {control}"
            )
            .replace("inferencecache get", f"{sys.executable} -m inferencecache get {control}")
            .replace("curl ", "curl --silent --show-error ")
        )

    async def run(self, block: str) -> str:
        """Run a block of the page; return what it says."""
        lines = [*map(self._here, block.splitlines()), "echo", 'echo "$ENGINE"']
        said = await bash(
            "\n".join(lines),
            DIR=str(self._demo.directory),
            URL=self._demo.gateway,
            ENGINE=self._engine,
        )
        before, _, self._engine = said.removesuffix("\n").rpartition("\n")
        return before


@pytest.fixture
async def demo() -> AsyncIterator[Demo]:
    """Run a demo whose engines stay away until they are told to come back."""
    async with running_demo("--suppress-for", "500ms", "--down-for", "10m") as running:
        yield running


async def test_prompts_that_begin_alike(demo: Demo) -> None:
    """The numbers of the page, and the numbers of the demo's line."""
    alike, why = SECTIONS[ALIKE]
    terminal = Terminal(demo)
    one, other = alike.splitlines()
    first = await terminal.run(one)
    await demo.until_held(2641 // 16)
    second = await terminal.run(other)
    explained = await terminal.run(why)

    assert "computed 2641 of 2641 prompt tokens; 0 were cached" in first
    assert "computed 48 of 2656 prompt tokens; 2608 were cached" in second
    assert "prefix=precise;matched=" in explained
    assert '"decisions": [' in explained
    await demo.until(lambda line: "has 2,608 of 2,656 tokens (precise)" in line)


async def test_many_at_once(demo: Demo) -> None:
    """They are spread over all engines; on a machine that is slow to send them not evenly."""
    (six,) = SECTIONS[MANY]
    answers = await Terminal(demo).run(six)

    engines = re.findall(r"(engine-\d) computed 2644 of 2644 prompt tokens", answers)
    assert len(engines) == 6
    assert set(engines) == {"engine-0", "engine-1", "engine-2"}


async def test_streams_and_the_client(demo: Demo) -> None:
    """Word by word, and as the program on the page has it."""
    (stream,) = SECTIONS[STREAMS]
    (program,) = PROGRAMS
    streamed = await Terminal(demo).run(stream)
    said = await bash(
        '"$PYTHON" -c "$PROGRAM"',
        PYTHON=sys.executable,
        PROGRAM=program.replace("http://127.0.0.1:8090/v1", demo.gateway),
    )

    assert streamed.count('"chat.completion.chunk"') > 5
    assert re.match(r"engine-\d computed \d+ of \d+ prompt tokens", said)


async def test_an_engine_that_dies(demo: Demo) -> None:
    """It is left alone, comes back, works again; and without any the provider takes over."""
    kill, start, words, kill_all = SECTIONS[DEATH]
    terminal = Terminal(demo)
    killed = await terminal.run(kill)
    async with asyncio.timeout(60):
        # On a machine that sends the three one after the other, fewer meet the engine.
        while not any("has failed again and again: left alone for" in line for line in demo.lines):
            await terminal.run(words)
    started = await terminal.run(start)
    async with asyncio.timeout(60):
        while not any(line.endswith("works again: picked as before") for line in demo.lines):
            tried = await terminal.run(words)
    taken_over = await terminal.run(kill_all)

    assert "is down; it is back in 600 s" in killed
    assert "computed 2641 of 2641 prompt tokens" in killed
    assert "is up" in started
    assert tried.count("prompt tokens") == 4
    assert "the provider computed 2641 of 2641 prompt tokens" in taken_over


async def test_a_wrong_key(demo: Demo) -> None:
    """The state is that of the page; the right key mends it."""
    wrong, right, ask = SECTIONS[KEY]
    terminal = Terminal(demo)
    refused = await terminal.run(wrong)
    await terminal.run(right)
    async with asyncio.timeout(60):
        while "the provider computed" not in await terminal.run(ask):
            pass

    state = "Accepted,BackendUnauthorized,Suppressed"
    assert refused.count('"error"') == 3
    assert state in refused
    assert state in PAGE


def test_all_commands_are_above() -> None:
    """Those of other sections would be tested by nobody."""
    start, _ = SECTIONS[BEGINNING]

    assert start == "inferencecache demo\n"
    assert {head for head, blocks in SECTIONS.items() if blocks} == {
        BEGINNING,
        ALIKE,
        MANY,
        STREAMS,
        DEATH,
        KEY,
    }
