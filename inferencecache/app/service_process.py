"""Run one service as the whole of a process: signals in, exit code out."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from inferencecache.app.collector import calm_collector, collect_rarely
from inferencecache.settings.collector import CollectorSettings
from inferencecache.transport.listen import ListenError
from inferencecache.transport.start_error import StartError
from inferencecache.transport.structured_log import StructuredLog

STOPPED: Final = 0
FAILED: Final = 1

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
