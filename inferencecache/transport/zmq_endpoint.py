"""Endpoints of an engine's ranks: each rank has both ports one above the rank before."""

import re
from typing import Final

from inferencecache.errors import ConfigError

_TCP: Final = re.compile(r"(tcp://.+:)(\d{1,5})")
_OTHER: Final = re.compile(r"(ipc|inproc)://.+")
_PORT_MAX: Final = 65_535
_FORM: Final = "tcp://HOST:PORT, or ipc:// for one rank"


def rank_endpoint(endpoint: str, rank: int, *, flag: str) -> str:
    """Return where *rank* is, given where rank 0 is.

    Args:
        endpoint: Endpoint of rank 0; one that names every interface means this machine.
        rank: The rank, >= 0.
        flag: Setting the endpoint comes from, for the error.

    Raises:
        ConfigError: The endpoint has no usable form, or the rank no port.
    """
    tcp = _TCP.fullmatch(endpoint)
    if tcp is not None and 0 < int(tcp[2]) + rank <= _PORT_MAX:
        return f"{_reachable(tcp[1])}{int(tcp[2]) + rank}"
    if _OTHER.fullmatch(endpoint) and rank == 0:
        return endpoint
    raise ConfigError(field=flag, value=endpoint, allowed=_FORM, source=f"rank {rank}")


def _reachable(prefix: str) -> str:
    """Return *prefix* with a host that can be connected to."""
    for every in ("//*:", "//0.0.0.0:", "//[::]:"):
        if prefix.endswith(every):
            return f"tcp:{'//127.0.0.1:'}"
    return prefix
