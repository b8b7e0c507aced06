"""Run one gateway as the whole of a process: signals in, exit code out."""

import asyncio
import signal
import sys
from typing import Final

import uvloop

from inferencecache.app.collector import calm_collector
from inferencecache.app.gateway import Gateway
from inferencecache.settings.gateway import GatewaySettings
from inferencecache.transport.listen import ListenError
from inferencecache.transport.start_error import StartError
from inferencecache.transport.structured_log import StructuredLog, configure_log

STOPPED: Final = 0
FAILED: Final = 1

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def run_gateway(settings: GatewaySettings) -> int:
    """Serve until SIGTERM or SIGINT.

    Returns:
        0 after an orderly end, 1 if a file cannot be used, a listener could not be bound, or the
        gateway broke.

    Raises:
        ConfigError: The settings make no sense together.
    """
    configure_log(settings.logs, sys.stderr)
    return uvloop.run(_serve(settings))


async def _serve(settings: GatewaySettings) -> int:
    log = StructuredLog()
    asked_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, asked_to_stop.set)
    try:
        gateway = Gateway(settings, log)
        await gateway.start()
    except (ListenError, StartError) as error:
        _log_refusal(log, error)
        return FAILED
    calm_collector()
    broken = asyncio.create_task(gateway.wait_broken())
    stopping = asyncio.create_task(asked_to_stop.wait())
    await asyncio.wait((broken, stopping), return_when=asyncio.FIRST_COMPLETED)
    code = STOPPED
    if broken.done():
        code = FAILED
        log.error("gateway_broken", reason=repr(broken.exception()))
    for task in (broken, stopping):
        task.cancel()
    await gateway.stop()
    await asyncio.gather(broken, stopping, return_exceptions=True)
    return code


def _log_refusal(log: StructuredLog, error: ListenError | StartError) -> None:
    if isinstance(error, StartError):
        log.error(error.event, reason=error.reason)
        return
    log.error("serve_error", listener=error.listener, addr=error.address, reason=error.reason)
