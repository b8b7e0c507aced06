"""Run the data producers of a Pick as tasks, each for no longer than it may take.

Rules of this file: a Pick never waits for a producer beyond its limit, not even for one that does
not let itself be cancelled; what such a straggler returns is thrown away. Stragglers count against
the number of running producers until they are done.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.picker.pipeline import FailureKind, Produced, ProducerWork
from inferencecache.picker.pipeline.guard import PluginFailure
from inferencecache.picker.pipeline.producer_plan import ProducerStep

_NOW_NS: Final = 0


@dataclass(frozen=True, slots=True)
class _Running:
    """A producer that was started.

    Attributes:
        step: Which one.
        started_ns: When.
    """

    step: ProducerStep
    started_ns: int

    @property
    def deadline_ns(self) -> int:
        """When it is too late."""
        return self.started_ns + self.step.timeout_ns


_Product = Produced | PluginFailure
"""What a task comes to; whatever else it raises, it keeps to itself."""

Tasks = dict[asyncio.Task[_Product], _Running]


class ProducerTasks:
    """A runner of producers; one serves all Picks of a server.

    Args:
        clock: Measures them.
        running_max: Most that run at a time.
    """

    def __init__(self, clock: Clock, running_max: int) -> None:
        self._clock = clock
        self._running_max = running_max
        self._tasks: set[asyncio.Task[_Product]] = set()

    def __len__(self) -> int:
        """Return how many are running, stragglers included."""
        return len(self._tasks)

    async def run(self, work: ProducerWork) -> None:
        """Run all of *work*; see :class:`ProducerRunner`."""
        tasks: Tasks = {}
        try:
            while True:
                self._start(work, tasks)
                if not tasks:
                    return
                await asyncio.wait(
                    tasks,
                    timeout=self._left_ns(tasks) / NS_PER_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                self._collect(work, tasks)
        finally:
            for task in tasks:
                task.cancel()

    def _start(self, work: ProducerWork, tasks: Tasks) -> None:
        """Start what is ready; what cannot be started fails, and may make others ready."""
        while steps := work.ready():
            for step in steps:
                if step.immediate is not None:
                    work.ran(step, step.immediate, self._clock)
                elif len(self._tasks) >= self._running_max:
                    work.fell_out(step, FailureKind.BUSY)
                else:
                    task = asyncio.create_task(
                        _produce(step, work), name=f"picker-producer {step.name}"
                    )
                    self._tasks.add(task)
                    task.add_done_callback(self._done)
                    tasks[task] = _Running(step, self._clock.monotonic_ns())

    def _left_ns(self, tasks: Tasks) -> int:
        first_ns = min(running.deadline_ns for running in tasks.values())
        return max(first_ns - self._clock.monotonic_ns(), _NOW_NS)

    def _collect(self, work: ProducerWork, tasks: Tasks) -> None:
        """Take what has come, and give up on what is late."""
        now_ns = self._clock.monotonic_ns()
        for task, running in list(tasks.items()):
            if task.done():
                del tasks[task]
                _tell(work, task, running, now_ns)
            elif now_ns >= running.deadline_ns:
                del tasks[task]
                task.cancel()
                work.fell_out(running.step, FailureKind.TIMEOUT)

    def _done(self, task: asyncio.Task[_Product]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # a straggler's counts as seen


async def _produce(step: ProducerStep, work: ProducerWork) -> _Product:
    """Return what a producer found; whatever it does wrong, even before it waits, is its task's.

    But for the end of the program, which the loop would not leave to the task.
    """
    try:
        return await step.plugin.produce(work.request, work.endpoints)
    except SystemExit as error:
        return PluginFailure(error)


def _tell(work: ProducerWork, task: asyncio.Task[_Product], running: _Running, now_ns: int) -> None:
    if task.cancelled():
        work.fell_out(running.step, FailureKind.RAISED)
        return
    error = task.exception()
    product = PluginFailure(error) if error is not None else task.result()
    if isinstance(product, PluginFailure):
        work.fell_out(running.step, FailureKind.RAISED, product.error)
    else:
        work.finished(running.step, product, now_ns - running.started_ns)
