"""Clients that have prepared themselves start together, when the benchmark says so."""

import sys
from typing import Final

READY: Final = "ready"


def wait_for_go() -> None:
    """Say that preparation is done and wait for a line of input."""
    print(READY, flush=True)
    sys.stdin.readline()
