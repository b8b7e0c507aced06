"""Run one producer as the whole of a process: signals in, exit code out."""

import asyncio
import signal
import sys
from typing import Literal

import uvloop

from inferencecache.app.collector import calm_collector
from inferencecache.app.producer import Producer
from inferencecache.settings.logs import LogSettings
from inferencecache.settings.subscribe import OnceSettings, ProducerSettings
from inferencecache.transport.listen import ListenError
from inferencecache.transport.structured_log import StructuredLog, configure_log

STOPPED = 0
FAILED = 1

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_producer(settings: ProducerSettings, once: OnceSettings, logs: LogSettings) -> int:
    """Follow engines until SIGTERM or SIGINT, or until they have been followed once.

    Returns:
        0 after an orderly end, 1 if the listener could not be bound or the producer broke.

    Raises:
        ConfigError: The settings make no sense together.
    """
    configure_log(logs, sys.stderr)
    producer = Producer(settings, StructuredLog())
    code = uvloop.run(_follow(producer, is_once=once.is_once))
    if once.dump:
        for replica_id, adapter_id, key, tier in sorted(producer.held_keys()):
            sys.stdout.write(f"{replica_id}\t{adapter_id}\t{key:016x}\t{tier.name}\n")
    return code


async def _follow(producer: Producer, *, is_once: bool) -> int:
    log = StructuredLog()
    asked_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, asked_to_stop.set)
    try:
        await producer.start()
    except ListenError as error:
        _log_refusal(log, error)
        return FAILED
    calm_collector()
    broken = asyncio.create_task(producer.wait_broken())
    ends = [asyncio.create_task(asked_to_stop.wait())]
    if is_once:
        ends.append(asyncio.create_task(_done_once(producer)))
    await asyncio.wait((broken, *ends), return_when=asyncio.FIRST_COMPLETED)
    code = STOPPED
    if broken.done():
        code = FAILED
        _log_failure(log, broken)
    for end in ends:
        end.cancel()
    await producer.stop()
    await asyncio.gather(broken, *ends, return_exceptions=True)
    return code


async def _done_once(producer: Producer) -> Literal[True]:
    await producer.wait_synced()
    await producer.drained()
    return True


def _log_refusal(log: StructuredLog, error: ListenError) -> None:
    log.error("serve_error", listener=error.listener, addr=error.address, reason=error.reason)


def _log_failure(log: StructuredLog, broken: asyncio.Task[None]) -> None:
    error = broken.exception()
    log.error("producer_broken", reason=f"{type(error).__name__}: {error}")
