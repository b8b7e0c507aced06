"""How long the server's own work holds its loop: processor time per step of a handler.

Clients, producer and server share the machine's cores, so a client's latency says how long a call
waited for them all. A step is what a handler does between two points where it gives the loop back;
its processor time is what others wait for whatever else the machine does.
"""

import json
from collections.abc import Awaitable, Callable, Generator
from functools import partial, wraps
from time import thread_time_ns
from typing import Any

from benchmarks.measure import NS_PER_MS

LONG_MS = 10


class StepTrace:
    """The steps of handlers since they were last asked for."""

    def __init__(self) -> None:
        self._steps_ns: dict[str, list[int]] = {}

    def follow(self, owner: type, name: str) -> None:
        """Time the steps of a coroutine method of *owner* from now on."""
        method: Callable[..., Awaitable[Any]] = getattr(owner, name)

        @wraps(method)
        async def timed(*arguments: object) -> object:
            return await _Timed(method(*arguments), self._steps_ns.setdefault(name, []))

        setattr(owner, name, timed)

    async def take(self, _request: bytes, _context: object) -> bytes:
        """Return what was seen as JSON, and forget it."""
        seen = {name: _summary(steps) for name, steps in self._steps_ns.items() if steps}
        for steps in self._steps_ns.values():
            steps.clear()
        return json.dumps(seen).encode()


class _Timed:
    """An awaitable that passes another one's steps on and notes what each took."""

    def __init__(self, inner: Awaitable[Any], steps_ns: list[int]) -> None:
        self._inner = inner
        self._steps_ns = steps_ns

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._inner.__await__()
        resume: Callable[[], Any] = partial(next, steps)
        while True:
            started = thread_time_ns()
            try:
                waits_for = resume()
            except StopIteration as finished:
                return finished.value
            finally:
                self._steps_ns.append(thread_time_ns() - started)
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001 - it is the handler's, cancellation above all
                resume = partial(steps.throw, error)  # type: ignore[attr-defined]
            else:
                resume = partial(next, steps)


def _summary(steps_ns: list[int]) -> dict[str, float]:
    return {
        "steps": len(steps_ns),
        "longest_ms": max(steps_ns) / NS_PER_MS,
        "long": sum(step > LONG_MS * NS_PER_MS for step in steps_ns),
    }
