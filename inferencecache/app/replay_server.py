"""The server of a replay: the one that was named, or one that lives as long as the replay."""

import dataclasses
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from inferencecache.app.server import running_server
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.replay import ReplaySettings
from inferencecache.settings.server import ServerSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.transport.structured_log import LOGGER_NAME, EventLog, StructuredLog


@asynccontextmanager
async def server_for(settings: ReplaySettings) -> AsyncIterator[str]:
    """Give the gRPC target to use; a server started here ends with the block.

    Args:
        settings: The replay; an empty ``server`` starts one.
    """
    if settings.server:
        yield settings.server
        return
    async with running_server(throwaway_settings(settings), replay_log()) as server:
        yield server.grpc_target


def replay_log() -> EventLog:
    """Return the log of a replay's own parts.

    Whoever runs a replay is told in one line what there is to know of them.
    """
    logger = logging.getLogger(f"{LOGGER_NAME}.replay")
    logger.setLevel(logging.ERROR)
    return StructuredLog(logger)


def throwaway_settings(settings: ReplaySettings) -> ServerSettings:
    """Return the settings of a server on loopback that can hold what the fleet holds.

    Args:
        settings: The replay.
    """
    defaults = IndexSettings()
    return throwaway_server_settings(
        index=dataclasses.replace(
            defaults,
            entries_max=max(defaults.entries_max, settings.replicas * settings.cache_blocks),
            ttl_ns=settings.server_ttl_ns,
        ),
    )
