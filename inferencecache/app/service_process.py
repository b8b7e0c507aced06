"""Run one service as the whole of a process: signals in, exit code out."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final, Never, Protocol

import uvloop

from inferencecache.app.collector import calm_collector, collect_rarely
from inferencecache.clock import NS_PER_S
from inferencecache.settings.collector import CollectorSettings
from inferencecache.settings.ending import EndingSettings
from inferencecache.transport.listen import ListenError
from inferencecache.transport.start_error import StartError
from inferencecache.transport.structured_log import StructuredLog

STOPPED: Final = 0
FAILED: Final = 1

_LEFT_NAMES_MAX: Final = 16

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Service(Protocol):
    """What a process runs."""

    async def start(self) -> object:
        """Begin.

        Raises:
            ListenError: An address cannot be had.
            StartError: Something else that it needs is not there.
        """
        ...

    async def wait_broken(self) -> None:
        """Wait for ever, or raise what broke it."""
        ...

    async def stop(self) -> None:
        """End in order."""
        ...


def run_to_end(work: Coroutine[Any, Any, int], settings: EndingSettings) -> int:
    """Run *work* as the whole of a process, whatever it leaves behind.

    Tasks that are left are cancelled, asynchronous generators closed, and threads of the event loop
    waited for. If some of them go on for too long, as those of a plugin may, they are logged and
    the process ends here.

    Args:
        work: What there is to do.
        settings: How long is too long.

    Returns:
        What *work* returns.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        code = FAILED
        try:
            code = runner.run(work)
        finally:
            left = runner.run(_end_others(settings.left_wait_ns / NS_PER_S))
            if left:
                _exit_despite(left, code)
        return code


async def serve_until_ended(
    make: Callable[[StructuredLog], Service],
    collector: CollectorSettings,
    *,
    broken_event: str,
    ends: Callable[[], Sequence[Awaitable[object]]] = tuple,
) -> int:
    """Run a service until SIGTERM, SIGINT, its own end or a failure.

    Args:
        make: Makes it, on the event loop; may refuse to, as its start may.
        collector: How often everything is looked at for garbage.
        broken_event: Name of the log line where it breaks.
        ends: What else ends it in order; asked once it has started.

    Returns:
        0 after an orderly end, else 1.
    """
    log = StructuredLog()
    asked_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, asked_to_stop.set)
    try:
        service = make(log)
        await service.start()
    except (ListenError, StartError) as error:
        _log_refusal(log, error)
        return FAILED
    calm_collector()
    collecting = asyncio.ensure_future(collect_rarely(collector.collect_interval_ns))
    broken = asyncio.ensure_future(service.wait_broken())
    wanted = [asyncio.ensure_future(each) for each in (asked_to_stop.wait(), *ends())]
    await asyncio.wait((broken, *wanted), return_when=asyncio.FIRST_COMPLETED)
    code = STOPPED
    if not any(each.done() for each in wanted):
        code = FAILED
        failure = broken.exception()
        log.error(broken_event, reason=f"{type(failure).__name__}: {failure}")
    for task in (collecting, *wanted):
        task.cancel()
    await service.stop()
    broken.cancel()  # only now: a service may need its periodic work until it has stopped
    await asyncio.gather(collecting, broken, *wanted, return_exceptions=True)
    return code


def _log_refusal(log: StructuredLog, error: ListenError | StartError) -> None:
    if isinstance(error, StartError):
        log.error(error.event, reason=error.reason)
        return
    log.error("serve_error", listener=error.listener, addr=error.address, reason=error.reason)


async def _end_others(limit_s: float) -> Collection[asyncio.Task[Any]]:
    """End within *limit_s* whatever goes on in the loop; return what is left in the end."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + limit_s
    left = await _cancel_others(end_s)
    if left:
        return left
    # Both wait for ever, and the runner would ask for them once more.
    closing = [
        asyncio.create_task(loop.shutdown_asyncgens(), name="asynchronous generators"),
        asyncio.create_task(loop.shutdown_default_executor(), name="threads"),
    ]
    _, left = await asyncio.wait(closing, timeout=max(0.0, end_s - loop.time()))
    return left


async def _cancel_others(end_s: float) -> Collection[asyncio.Task[Any]]:
    """Cancel all other tasks, and those they start meanwhile; return what is left at *end_s*."""
    loop = asyncio.get_running_loop()
    own = {asyncio.current_task()}
    while left := asyncio.all_tasks() - own:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=max(0.0, end_s - loop.time()))
        if loop.time() >= end_s:
            return asyncio.all_tasks() - own
    return left


def _exit_despite(left: Collection[asyncio.Task[Any]], code: int) -> Never:
    """End the process at once: even its orderly end would let go of *left*, which may refuse."""
    log = StructuredLog()
    if sys.exception() is not None:
        log.exception("process_failed")  # noqa: LOG004 - called while one is on its way
    names = sorted(task.get_name() for task in left)[:_LEFT_NAMES_MAX]
    log.warning("tasks_left_at_end", count=len(left), names=", ".join(names))
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(code)
