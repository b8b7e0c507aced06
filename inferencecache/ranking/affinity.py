"""Pin a prompt nobody holds to one replica, so that its next occurrence finds it warm."""

import hashlib
from collections.abc import Sequence
from typing import Final

_LENGTH_BYTES: Final = 4
_DRAW_BYTES: Final = 8


def affinity_seed(block_hashes: Sequence[bytes], prefix_hash: bytes) -> bytes:
    """Return the bytes that stand for a prompt.

    Every hash of the chain after its length, so that no two chains share a seed:
    ``[b"ab", b"cd"]`` gives ``00 00 00 02 61 62 00 00 00 02 63 64``. Without a chain the exact
    hash as it is.

    Args:
        block_hashes: The resolved chain, may be empty.
        prefix_hash: The resolved exact hash, may be empty.

    Returns:
        The seed, empty when there is nothing to go by.

    Complexity: O(bytes of the chain).
    """
    if not block_hashes:
        return prefix_hash
    lengths = set(map(len, block_hashes))
    if len(lengths) == 1:
        marker = lengths.pop().to_bytes(_LENGTH_BYTES, "big")
        return marker + marker.join(block_hashes)
    return b"".join(
        part
        for block_hash in block_hashes
        for part in (len(block_hash).to_bytes(_LENGTH_BYTES, "big"), block_hash)
    )


class PromptDraw:
    """Draws a number from a prompt's seed, which may come piece by piece."""

    __slots__ = ("_digest",)

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, seed: bytes) -> None:
        """Add the next part of the seed; those of a chain's pieces make that of the chain.

        Complexity: O(bytes).
        """
        self._digest.update(seed)

    def pick(self, replicas: Sequence[str]) -> str:
        """Return the replica that the prompt falls on.

        It is the same one while the replicas are the same. Plain modulo, as every implementation
        of the contract does it: a change of membership moves most prompts.

        Args:
            replicas: Replicas serving the scope, in byte order, not empty.

        Complexity: O(1).
        """
        draw = int.from_bytes(self._digest.digest()[:_DRAW_BYTES], "big")
        return replicas[draw % len(replicas)]
