"""Run one server as the whole of a process: signals in, exit code out."""

import asyncio
import signal
import sys

import uvloop

from inferencecache.app.collector import calm_collector, collect_rarely
from inferencecache.app.server import Server
from inferencecache.settings.server import ServerSettings
from inferencecache.transport.listen import ListenError
from inferencecache.transport.start_error import StartError
from inferencecache.transport.structured_log import StructuredLog, configure_log

STOPPED = 0
FAILED = 1

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_process(settings: ServerSettings) -> int:
    """Serve until SIGTERM or SIGINT.

    Returns:
        0 after an orderly end, 1 if something the server needs is not there, a listener could not
        be bound, or the server broke.

    Raises:
        ConfigError: The settings make no sense together.
    """
    configure_log(settings.logs, sys.stderr, grpc_settings=settings.grpc)
    return uvloop.run(_serve(settings))


async def _serve(settings: ServerSettings) -> int:
    log = StructuredLog()
    asked_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, asked_to_stop.set)
    try:
        server = Server(settings, log)
        await server.start()
    except (ListenError, StartError) as error:
        _log_refusal(log, error)
        return FAILED
    calm_collector()
    collecting = asyncio.create_task(collect_rarely(settings.process.collect_interval_ns))
    broken = asyncio.create_task(server.wait_broken())
    stopping = asyncio.create_task(asked_to_stop.wait())
    await asyncio.wait((broken, stopping), return_when=asyncio.FIRST_COMPLETED)
    code = STOPPED
    if not stopping.done():
        code = FAILED
        _log_failure(log, broken)
    stopping.cancel()
    collecting.cancel()
    await server.stop()
    await asyncio.gather(broken, stopping, collecting, return_exceptions=True)
    return code


def _log_refusal(log: StructuredLog, error: ListenError | StartError) -> None:
    if isinstance(error, StartError):
        log.error(error.event, reason=error.reason)
        return
    log.error("serve_error", listener=error.listener, addr=error.address, reason=error.reason)


def _log_failure(log: StructuredLog, broken: asyncio.Task[None]) -> None:
    error = broken.exception()
    log.error("serve_error", reason=f"{type(error).__name__}: {error}")
