"""The server of a replay: the one that was named, or one that lives as long as the replay."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from inferencecache.app.server import running_server
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.http import HttpSettings
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.replay import ReplaySettings
from inferencecache.settings.server import ServerSettings

_LOOPBACK: Final = "127.0.0.1:0"


@asynccontextmanager
async def server_for(settings: ReplaySettings) -> AsyncIterator[str]:
    """Give the gRPC target to use; a server started here ends with the block.

    Args:
        settings: The replay; an empty ``server`` starts one.
    """
    if settings.server:
        yield settings.server
        return
    async with running_server(throwaway_settings(settings)) as server:
        yield server.grpc_target


def throwaway_settings(settings: ReplaySettings) -> ServerSettings:
    """Return the settings of a server on loopback that can hold what the fleet holds.

    Args:
        settings: The replay.
    """
    defaults = IndexSettings()
    return ServerSettings(
        index=dataclasses.replace(
            defaults,
            entries_max=max(defaults.entries_max, settings.replicas * settings.cache_blocks),
            ttl_ns=settings.server_ttl_ns,
        ),
        grpc=GrpcSettings(bind_address=_LOOPBACK),
        http=HttpSettings(bind_address=_LOOPBACK),
    )
