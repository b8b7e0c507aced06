"""Run one gateway as the whole of a process."""

import sys
from functools import partial

from inferencecache.app.gateway import Gateway
from inferencecache.app.service_process import run_to_end, serve_until_ended
from inferencecache.settings.gateway import GatewaySettings
from inferencecache.transport.structured_log import configure_log


def run_gateway(settings: GatewaySettings) -> int:
    """Serve until SIGTERM or SIGINT.

    Returns:
        0 after an orderly end, 1 if a file cannot be used, a listener could not be bound, or the
        gateway broke.

    Raises:
        ConfigError: The settings make no sense together.
    """
    configure_log(settings.logs, sys.stderr)
    make = partial(Gateway, settings)
    work = serve_until_ended(make, settings.collector, broken_event="gateway_broken")
    return run_to_end(work, settings.ending)
