"""The picker under test: the real one, with default limits; prints its address.

Its argument is how long bodies and decisions wait, in milliseconds.
"""

import sys

import uvloop

from inferencecache.app.picker import Picker, PickerParts
from inferencecache.clock import NS_PER_MS
from inferencecache.index import PrefixIndex
from inferencecache.policy import PolicyStore
from inferencecache.settings.picker import PickerParseSettings, PickerSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.transport.prometheus import ServerMetrics
from inferencecache.transport.structured_log import StructuredLog
from inferencecache.transport.system_clock import SystemClock

ENDPOINTS = ",".join(f"m=10.0.0.{number}:8000" for number in range(1, 9))


async def serve(ttl_ms: int) -> None:
    """Serve until the process is terminated.

    Args:
        ttl_ms: How long bodies and decisions wait.
    """
    settings = throwaway_server_settings()
    index = PrefixIndex(
        settings.index, PolicyStore(settings.policy, default_ttl_ns=settings.index.ttl_ns)
    )
    picker = Picker(
        PickerParts(
            settings=PickerSettings(
                bind_address="127.0.0.1:0",
                endpoints=ENDPOINTS,
                body_ttl_ns=ttl_ms * NS_PER_MS,
                unpulled_ttl_ns=ttl_ms * NS_PER_MS,
                decision_ttl_ns=ttl_ms * NS_PER_MS,
                buffered_bytes_max=2 * 1_024**3,
            ),
            parse=PickerParseSettings(),
            port=settings.grpc,
            metrics=settings.metrics,
            clock=SystemClock(),
            observer=ServerMetrics(settings.metrics, index),
            log=StructuredLog(),
        )
    )
    print(await picker.start(), flush=True)
    await picker.run()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
