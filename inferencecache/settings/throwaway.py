"""Settings of a server that lives as long as a command or a test: loopback, free ports, no auth."""

from typing import Any, Final

from inferencecache.settings.auth import AuthSettings
from inferencecache.settings.control import ControlSettings
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.http import HttpSettings
from inferencecache.settings.server import ServerSettings

_LOOPBACK: Final = "127.0.0.1:0"


def throwaway_server_settings(**groups: Any) -> ServerSettings:  # noqa: ANN401 - any group of settings
    """Return settings under which only this machine reaches the server.

    Args:
        groups: Groups that are not to be at their defaults, by attribute.
    """
    chosen: dict[str, Any] = {
        "grpc": GrpcSettings(bind_address=_LOOPBACK),
        "http": HttpSettings(bind_address=_LOOPBACK),
        "control": ControlSettings(bind_address=_LOOPBACK),
        "auth": AuthSettings(insecure_disable_auth=True),
    }
    return ServerSettings(**{**chosen, **groups})
