"""The picker under test: the real one, with default limits and two plugins; prints its address.

Its argument is how long bodies and decisions wait, in milliseconds.
"""

import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop

from inferencecache.app.picker import Picker, PickerParts
from inferencecache.app.picker_plugins import PickerPluginParts, PickerPlugins
from inferencecache.clock import NS_PER_MS, Clock
from inferencecache.index import PrefixIndex
from inferencecache.policy import PolicyStore
from inferencecache.settings.picker import PickerParseSettings, PickerSettings
from inferencecache.settings.server import ServerSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.transport.prometheus import ServerMetrics
from inferencecache.transport.structured_log import EventLog, StructuredLog
from inferencecache.transport.system_clock import SystemClock

PLUGINS = """
apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
plugins:
  - type: inflight-load-producer
  - type: token-load-scorer
"""
"""A producer, and a scorer of what it finds out."""

ENDPOINTS = ",".join(f"m=10.0.0.{number}:8000" for number in range(1, 9))


async def serve(ttl_ms: int) -> None:
    """Serve until the process is terminated.

    Args:
        ttl_ms: How long bodies and decisions wait.
    """
    picker = made_picker(ttl_ms)
    print(await picker.start(), flush=True)
    await picker.run()


def made_picker(ttl_ms: int) -> Picker:
    """Return a picker that does not listen yet.

    Args:
        ttl_ms: How long bodies and decisions wait.
    """
    settings = throwaway_server_settings()
    index = PrefixIndex(
        settings.index, PolicyStore(settings.policy, default_ttl_ns=settings.index.ttl_ns)
    )
    clock, log = SystemClock(), StructuredLog()
    return Picker(
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
            clock=clock,
            observer=ServerMetrics(settings.metrics, index, clock),
            log=log,
            director=_plugins(settings, clock, log).director,
        )
    )


def _plugins(settings: ServerSettings, clock: Clock, log: EventLog) -> PickerPlugins:
    with TemporaryDirectory() as directory:
        file = Path(directory) / "plugins.yaml"
        file.write_text(PLUGINS, encoding="utf-8")
        return PickerPlugins(
            PickerPluginParts(
                settings=replace(settings.picker_plugins, config_file=str(file)),
                resources=settings.resources,
                clock=clock,
                log=log,
                log_interval_ns=settings.grpc.failure_log_interval_ns,
            )
        )


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
