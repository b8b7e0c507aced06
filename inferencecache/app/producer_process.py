"""Run one producer as the whole of a process."""

import sys
from collections.abc import Awaitable, Sequence

from inferencecache.app.producer import Producer
from inferencecache.app.service_process import run_to_end, serve_until_ended
from inferencecache.settings.collector import CollectorSettings
from inferencecache.settings.ending import EndingSettings
from inferencecache.settings.logs import LogSettings
from inferencecache.settings.subscribe import OnceSettings, ProducerSettings
from inferencecache.transport.structured_log import StructuredLog, configure_log


def run_producer(
    settings: ProducerSettings,
    once: OnceSettings,
    collector: CollectorSettings,
    ending: EndingSettings,
    logs: LogSettings,
) -> int:
    """Follow engines until SIGTERM or SIGINT, or until they have been followed once.

    Returns:
        0 after an orderly end, 1 if the listener could not be bound or the producer broke.

    Raises:
        ConfigError: The settings make no sense together.
    """
    configure_log(logs, sys.stderr)
    producer = Producer(settings, StructuredLog())

    def ends() -> Sequence[Awaitable[object]]:
        return (_done_once(producer),) if once.is_once else ()

    async def follow() -> int:
        code = await serve_until_ended(
            lambda _log: producer, collector, broken_event="producer_broken", ends=ends
        )
        if once.dump:
            for replica_id, adapter_id, key, tier in sorted(producer.held_keys()):
                sys.stdout.write(f"{replica_id}\t{adapter_id}\t{key:016x}\t{tier.name}\n")
        return code

    return run_to_end(follow(), ending)


async def _done_once(producer: Producer) -> None:
    """Wait until the engines have been followed once."""
    await producer.wait_synced()
    await producer.drained()
