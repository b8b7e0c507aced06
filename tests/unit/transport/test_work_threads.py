"""Threads that work is handed over to, and that let their process end."""

import subprocess
import sys
from collections.abc import Iterator
from threading import Barrier, Event, current_thread
from threading import enumerate as running_threads
from typing import Final
from weakref import ref

import pytest

from inferencecache.transport.work_threads import WorkThreads

NAME: Final = "work-of-a-test"
LONGEST_S: Final = 30.0


@pytest.fixture
def threads() -> Iterator[WorkThreads]:
    """Two of them."""
    made = WorkThreads(2, NAME)
    yield made
    made.stop()
    joined()


def joined() -> None:
    """Wait until all threads have ended."""
    for thread in running_threads():
        if thread.name.startswith(NAME):
            thread.join(LONGEST_S)
            assert not thread.is_alive()


def test_pieces_are_done_so_many_at_a_time(threads: WorkThreads) -> None:
    """Two meet; of many more none is done by anybody else."""
    meeting, done, last = Barrier(3), list[str](), Event()
    for _ in range(2):
        threads.begin(lambda: meeting.wait(LONGEST_S))
    meeting.wait(LONGEST_S)
    for _ in range(20):
        threads.begin(lambda: done.append(current_thread().name))
    threads.begin(last.set)

    assert last.wait(LONGEST_S)
    threads.stop()
    joined()
    assert len(done) == 20
    assert set(done) <= {f"{NAME}-1", f"{NAME}-2"}


def test_one_thread_does_them_in_order() -> None:
    """As they were handed over."""
    threads, done = WorkThreads(1, NAME), list[int]()
    for number in range(50):
        threads.begin(lambda number=number: done.append(number))  # type: ignore[misc] # bound now
    last = Event()
    threads.begin(last.set)
    assert last.wait(LONGEST_S)
    threads.stop()
    joined()

    assert done == list(range(50))


def test_what_was_called_off_is_not_done() -> None:
    """That is possible once, and only before it has begun."""
    threads, gate, begun, done = WorkThreads(1, NAME), Event(), Event(), list[str]()

    def wait() -> None:
        begun.set()
        gate.wait(LONGEST_S)

    under_way = threads.begin(wait)
    called_off, kept = (
        threads.begin(lambda: done.append("off")),
        threads.begin(lambda: done.append("kept")),
    )
    assert begun.wait(LONGEST_S)
    assert called_off.cancel()
    assert not called_off.cancel()
    assert not under_way.cancel()
    last = Event()
    threads.begin(last.set)
    gate.set()
    assert last.wait(LONGEST_S)
    assert not kept.cancel()
    threads.stop()
    joined()

    assert done == ["kept"]


def test_stopping_ends_threads_and_begins_nothing() -> None:
    """What is under way ends; what is not is dropped."""
    threads, gate, begun, done = WorkThreads(1, NAME), Event(), Event(), list[str]()

    def wait() -> None:
        begun.set()
        gate.wait(LONGEST_S)
        done.append("under way")

    threads.begin(wait)
    threads.begin(lambda: done.append("never"))
    assert begun.wait(LONGEST_S)
    threads.stop()
    gate.set()
    joined()

    assert done == ["under way"]


def test_nothing_of_a_piece_stays_with_a_thread(threads: WorkThreads) -> None:
    """A prompt is let go of when it is done, not when the next one comes."""

    class Prompt:
        def look(self) -> None:
            """Do nothing."""

    prompt, seen = Prompt(), Event()
    gone = ref(prompt, lambda _: seen.set())
    threads.begin(prompt.look)
    del prompt

    assert seen.wait(LONGEST_S)
    assert gone() is None


@pytest.mark.parametrize("stop", ["", "threads.stop()"], ids=["not stopped", "stopped"])
def test_a_process_ends_when_its_threads_have_done_what_they_are_at(stop: str) -> None:
    """Whether somebody has stopped them or not."""
    script = f"""
from threading import Event
from inferencecache.transport.work_threads import WorkThreads
threads, begun = WorkThreads(2, "t"), Event()
def work():
    begun.set()
    Event().wait(0.2)
    print("done", flush=True)
threads.begin(work)
begun.wait()
{stop}
"""
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
