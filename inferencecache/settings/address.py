"""Addresses to listen on: ``:9090``, ``host:port``, ``[::1]:0``."""

import re
from dataclasses import dataclass
from typing import Final, Self

ADDRESS_FORM: Final = "an address such as :9090, 127.0.0.1:9090 or [::1]:0"

_FORM: Final = re.compile(
    r"(?:\[(?P<ipv6>[\w:.%]+)\]|(?P<host>[\w.-]*)):(?P<port>\d{1,5})", re.ASCII
)
_PORT_MAX: Final = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class BindAddress:
    """Where a listener listens.

    Attributes:
        host: Name or IP address without brackets; empty means every interface.
        port: TCP port, 0 to 65535; 0 lets the system choose.
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``host:port``.

        Raises:
            ValueError: *text* has another form.
        """
        match = _FORM.fullmatch(text)
        if match is None or int(match["port"]) > _PORT_MAX:
            raise ValueError(ADDRESS_FORM)
        return cls(host=match["ipv6"] or match["host"] or "", port=int(match["port"]))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"
