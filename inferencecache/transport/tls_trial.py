"""Ask the gRPC core whether it takes a certificate, its key and the authority of clients.

The core is built on another TLS library than Python is, and takes less. A listener that is handed
what the core does not take keeps what it had, and says nothing.

Asking means to open a port. The core calls back from its own threads with locks of its own held, so
a second server beside a busy one has been seen to stop both, or to crash. That is why the question
goes to a process of its own: this file, run as a script, which imports nothing of ours.
"""

import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import grpc

_FREE: Final = "127.0.0.1:0"
_LENGTHS: Final = struct.Struct(">III")
_LIMIT_S: Final = 60.0
_TAKEN, _REFUSED, _NO_PORT = 0, 10, 11


class TrialError(Exception):
    """There is no answer; asking again later may bring one."""


def grpc_takes(certificate: bytes, key: bytes, client_ca: bytes | None) -> bool:
    """Return whether a gRPC server can be given these, all PEM.

    Blocks for as long as a process takes to start, some tenths of a second.

    Raises:
        TrialError: The question could not be put.
    """
    parts = (certificate, key, client_ca or b"")
    try:
        asked = subprocess.run(  # noqa: S603 - this very file
            [sys.executable, "-P", __file__],
            input=_LENGTHS.pack(*map(len, parts)) + b"".join(parts),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TrialError(type(error).__name__) from error
    if asked.returncode not in {_TAKEN, _REFUSED}:
        raise TrialError(f"exit code {asked.returncode}")
    return asked.returncode == _TAKEN


def _answer(question: bytes) -> int:
    """Return the exit code that answers *question*."""
    certificate_bytes, key_bytes, _ = _LENGTHS.unpack_from(question)
    parts = question[_LENGTHS.size :]
    certificate, key = parts[:certificate_bytes], parts[certificate_bytes:][:key_bytes]
    client_ca = parts[certificate_bytes + key_bytes :] or None
    server = grpc.server(ThreadPoolExecutor(1))  # never started, so it answers nobody
    try:
        server.add_insecure_port(_FREE)
    except RuntimeError:
        return _NO_PORT
    credentials = grpc.ssl_server_credentials(
        [(key, certificate)],
        root_certificates=client_ca,
        require_client_auth=client_ca is not None,
    )
    try:
        server.add_secure_port(_FREE, credentials)
    except RuntimeError:
        return _REFUSED
    return _TAKEN


if __name__ == "__main__":
    sys.exit(_answer(sys.stdin.buffer.read()))
