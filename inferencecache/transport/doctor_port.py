"""What listens at a TCP port: nobody, something else, or which kind of ZMQ socket.

A ZMQ peer introduces itself: first a greeting of 64 bytes with its security mechanism, then, with
the NULL mechanism, a READY command that names its socket type. Both come without our doing more
than greet, so no socket of the peer ever counts us as connected.
"""

import asyncio
import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_ENDPOINT: Final = re.compile(r"tcp://(?:\[(?P<ipv6>[^\]]+)\]|(?P<host>[^*:/\[\]]+)):(?P<port>\d+)")
_PORT_MAX: Final = 65_535
_GREETING: Final = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
_GREETING_BYTES: Final = len(_GREETING)
_MECHANISM: Final = slice(12, 32)
_READY_BYTES_MAX: Final = 1_024
_NAME: Final = b"Socket-Type"
_VALUE_LENGTH_BYTES: Final = 4


class PortState(StrEnum):
    """What came of looking."""

    BAD_ENDPOINT = "bad_endpoint"
    UNRESOLVED = "unresolved"
    REFUSED = "refused"
    TIMED_OUT = "timed_out"
    UNREACHABLE = "unreachable"
    NOT_ZMQ = "not_zmq"
    SECURED = "secured"
    ZMQ = "zmq"


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One endpoint and what listens there.

    Attributes:
        endpoint: The endpoint.
        state: What was found.
        detail: The socket type for ZMQ, the mechanism when secured, otherwise what went wrong.
    """

    endpoint: str
    state: PortState
    detail: str = ""


async def look_at_port(endpoint: str, timeout_s: float) -> Port:
    """Connect to *endpoint*, see who answers, and leave.

    Args:
        endpoint: ``tcp://HOST:PORT``.
        timeout_s: Longest wait in seconds, for all steps together.
    """
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None or not 0 < int(match["port"]) <= _PORT_MAX:
        return Port(endpoint=endpoint, state=PortState.BAD_ENDPOINT)
    host = match["ipv6"] or match["host"]
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(host, int(match["port"]))
    except TimeoutError:
        return Port(endpoint=endpoint, state=PortState.TIMED_OUT)
    except OSError as error:
        return Port(endpoint=endpoint, state=_state_of(error), detail=error.strerror or str(error))
    try:
        async with asyncio.timeout(timeout_s):
            return await _greet(endpoint, reader, writer)
    except TimeoutError:
        detail = "it accepts connections and says nothing"
    except (OSError, asyncio.IncompleteReadError):
        detail = "it closes the connection"
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()
    return Port(endpoint=endpoint, state=PortState.NOT_ZMQ, detail=detail)


def port_after(endpoint: str, offset: int) -> str:
    """Return *endpoint* with a port *offset* higher; unchanged if it has no port."""
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None:
        return endpoint
    return f"{endpoint.rpartition(':')[0]}:{int(match['port']) + offset}"


async def _greet(endpoint: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Port:
    writer.write(_GREETING)
    start = await reader.readexactly(1)
    if start != _GREETING[:1]:
        return Port(endpoint=endpoint, state=PortState.NOT_ZMQ, detail="it speaks another protocol")
    greeting = start + await reader.readexactly(_GREETING_BYTES - 1)
    mechanism = greeting[_MECHANISM].rstrip(b"\0").decode("ascii", "replace")
    if mechanism != "NULL":
        return Port(endpoint=endpoint, state=PortState.SECURED, detail=mechanism)
    _, length = await reader.readexactly(2)
    ready = await reader.readexactly(min(length, _READY_BYTES_MAX))
    return Port(endpoint=endpoint, state=PortState.ZMQ, detail=_socket_type(ready))


def _socket_type(ready: bytes) -> str:
    """Return the socket type in a READY command; empty if it names none."""
    _, found, rest = ready.partition(_NAME)
    length = int.from_bytes(rest[:_VALUE_LENGTH_BYTES], "big")
    value = rest[_VALUE_LENGTH_BYTES : _VALUE_LENGTH_BYTES + length]
    return value.decode("ascii", "replace") if found else ""


def _state_of(error: OSError) -> PortState:
    if isinstance(error, socket.gaierror):
        return PortState.UNRESOLVED
    if isinstance(error, ConnectionRefusedError):
        return PortState.REFUSED
    return PortState.UNREACHABLE
