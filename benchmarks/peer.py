"""The peer: the radix tree of ``ai-dynamo-runtime``, Rust called from this Python process."""

import json
from collections.abc import Callable, Iterable
from functools import partial

PEER_PACKAGE = "ai-dynamo-runtime"
SKIP_NOTE = f"peer skipped: {PEER_PACKAGE} is not installed (dependency group bench)"


class Peer:
    """The tree with chains given as plain 64-bit numbers.

    Raises:
        ImportError: The package is not installed.
    """

    def __init__(self) -> None:
        from dynamo.llm import RadixTree  # noqa: PLC0415 - an optional package

        self._tree = RadixTree()
        self._events = 0

    def report(self, worker: int, chain: Iterable[int]) -> None:
        """Store a chain for a worker."""
        self._tree.apply_event(worker, self.event(chain))

    def event(self, chain: Iterable[int]) -> bytes:
        """Return the event that stores a chain from its start."""
        self._events += 1
        blocks = [{"block_hash": key, "tokens_hash": key} for key in chain]
        stored = {"parent_hash": None, "blocks": blocks}
        return json.dumps({"event_id": self._events, "data": {"stored": stored}}).encode()

    def match(self, chain: list[int]) -> Callable[[], object]:
        """Return a call that finds the holders of a chain and how far each goes."""
        return partial(self._tree.find_matches, chain)

    def depths(self, chain: list[int]) -> list[int]:
        """Return the matched blocks of each worker."""
        return list(self._tree.find_matches(chain).scores.values())


def numbers(chain: list[bytes]) -> list[int]:
    """Return keys as the peer takes them, below 2**63."""
    return [int.from_bytes(key, "big") >> 1 for key in chain]


def load_peer() -> Peer | None:
    """Return a peer, or None where it is not installed."""
    try:
        return Peer()
    except ImportError:
        return None
