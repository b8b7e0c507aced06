"""Run one server as the whole of a process."""

import sys
from functools import partial

from inferencecache.app.server import Server
from inferencecache.app.service_process import run_to_end, serve_until_ended
from inferencecache.settings.server import ServerSettings
from inferencecache.transport.structured_log import configure_log


def run_process(settings: ServerSettings) -> int:
    """Serve until SIGTERM or SIGINT.

    Returns:
        0 after an orderly end, 1 if something the server needs is not there, a listener could not
        be bound, or the server broke.

    Raises:
        ConfigError: The settings make no sense together.
    """
    configure_log(settings.logs, sys.stderr, grpc_settings=settings.grpc)
    make = partial(Server, settings)
    work = serve_until_ended(make, settings.collector, broken_event="serve_error")
    return run_to_end(work, settings.ending)
