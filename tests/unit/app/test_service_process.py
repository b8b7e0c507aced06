"""How the process of a service ends, and that old garbage goes meanwhile."""

import asyncio
import gc
import json
import signal
import subprocess
import sys
from collections.abc import Awaitable, Iterator, Sequence

import pytest

from inferencecache.app.service_process import FAILED, STOPPED, serve_until_ended
from inferencecache.clock import NS_PER_MS
from inferencecache.settings.collector import CollectorSettings
from inferencecache.transport.listen import ListenError
from inferencecache.transport.structured_log import StructuredLog


class Bench:
    """A service that does nothing.

    Args:
        refuses: Whether it cannot start.
        breaks: Whether it breaks at once.

    Attributes:
        stopped: How often it was stopped.
    """

    def __init__(self, *, refuses: bool = False, breaks: bool = False) -> None:
        self._refuses = refuses
        self._breaks = breaks
        self.stopped = 0

    async def start(self) -> None:
        """Begin, or refuse to."""
        if self._refuses:
            raise ListenError(listener="http", address="127.0.0.1:1", reason="taken")

    async def wait_broken(self) -> None:
        """Break, or wait for ever."""
        if self._breaks:
            raise ValueError("broken")
        await asyncio.get_running_loop().create_future()

    async def stop(self) -> None:
        """End."""
        self.stopped += 1

    def make(self, _log: StructuredLog) -> "Bench":
        """Return itself."""
        return self


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    """Leave the collector as it was."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


async def run(
    service: Bench,
    ends: Sequence[Awaitable[object]] = (),
    collector: CollectorSettings | None = None,
) -> int:
    """Run *service* until something ends it."""
    collector = collector or CollectorSettings()
    return await serve_until_ended(
        service.make, collector, broken_event="bench_broken", ends=lambda: ends
    )


async def test_its_own_end_is_an_orderly_one() -> None:
    """It is stopped, once."""
    service = Bench()
    assert await run(service, [asyncio.sleep(0)]) == STOPPED
    assert service.stopped == 1


async def test_a_signal_ends_it() -> None:
    """SIGTERM and SIGINT are alike."""
    service = Bench()
    loop = asyncio.get_running_loop()
    loop.call_soon(loop.call_soon, signal.raise_signal, signal.SIGTERM)
    assert await run(service) == STOPPED
    assert service.stopped == 1


async def test_what_breaks_is_stopped_and_failed() -> None:
    """Whoever started it sees a code."""
    service = Bench(breaks=True)
    assert await run(service) == FAILED
    assert service.stopped == 1


async def test_what_cannot_start_is_not_stopped() -> None:
    """There is nothing to stop."""
    service = Bench(refuses=True)
    assert await run(service) == FAILED
    assert service.stopped == 0


async def test_old_garbage_goes_meanwhile() -> None:
    """Whatever the service is."""
    done = asyncio.Event()

    def noticed(phase: str, details: dict[str, int]) -> None:
        if phase == "stop" and details["generation"] == 2:
            loop.call_soon(done.set)

    loop = asyncio.get_running_loop()
    collector = CollectorSettings(collect_interval_ns=NS_PER_MS)
    ends = [_after_start(noticed, done)]
    try:
        assert await run(Bench(), ends, collector) == STOPPED
    finally:
        gc.callbacks.remove(noticed)


async def _after_start(noticed: object, done: asyncio.Event) -> None:
    """Wait for a collection of everything, of which the start makes one of its own before."""
    gc.callbacks.append(noticed)  # type: ignore[arg-type]
    await done.wait()


LEAVES_SOMETHING = """
import asyncio
import sys
import threading

from inferencecache.app.service_process import run_to_end
from inferencecache.settings.ending import EndingSettings
from inferencecache.settings.logs import LogSettings
from inferencecache.transport.structured_log import configure_log


async def mule():
    while True:
        try:
            await asyncio.sleep(100)
        except:
            pass


async def lamb():
    try:
        await asyncio.sleep(100)
    finally:
        asyncio.create_task(asyncio.sleep(100), name="late lamb")


async def thread():
    await asyncio.to_thread(threading.Event().wait)


async def numbers():
    try:
        yield 1
    finally:
        await asyncio.Event().wait()


async def generator():
    kept.append(numbers())
    await anext(kept[0])


async def work():
    makers = (lamb, leaves[sys.argv[1]])
    tasks = [asyncio.create_task(each(), name=each.__name__) for each in makers]
    await asyncio.sleep(0)
    print("worked on", len(tasks))
    if "break" in sys.argv:
        raise ValueError("broken")
    return 3


kept = []
leaves = {each.__name__: each for each in (mule, thread, generator)}
configure_log(LogSettings(), sys.stderr)
sys.exit(run_to_end(work(), EndingSettings(left_wait_ns=300_000_000)))
"""


@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize(
    ("leaves", "name"),
    [("mule", "mule"), ("thread", "threads"), ("generator", "asynchronous generators")],
)
def test_what_refuses_to_end_ends_with_the_process(leaves: str, name: str, *, breaks: bool) -> None:
    """Which says what it was to say, and ends with the code that it was to end with."""
    finished = subprocess.run(
        [sys.executable, "-c", LEAVES_SOMETHING, leaves, *(["break"] if breaks else [])],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    lines = [json.loads(line) for line in finished.stderr.splitlines()]
    assert finished.returncode == (FAILED if breaks else 3)
    assert finished.stdout == "worked on 2\n"
    events = ["process_failed"] if breaks else []
    assert [line["msg"] for line in lines] == [*events, "tasks_left_at_end"]
    assert lines[-1]["names"].split(", ")[-1] == name
