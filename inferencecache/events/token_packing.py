"""Token ids as the bytes that the fingerprint is made of: 4 bytes little-endian each.

Packing tells for nothing whether an id is in range, and bytes are cut and kept more cheaply than
lists of numbers.
"""

import struct
import sys
from array import array

TOKEN_BYTES = 4

_SHORT_TOKENS = 64
_PACK_SHORT = [struct.Struct(f"<{total}I").pack for total in range(_SHORT_TOKENS + 1)]


def pack_tokens(tokens: list[int]) -> bytes:
    """Return *tokens* packed.

    Raises:
        OverflowError: One is below 0 or above 2**32 - 1.
    """
    if len(tokens) <= _SHORT_TOKENS:  # for a few, making an array takes longer than filling it
        try:
            return _PACK_SHORT[len(tokens)](*tokens)
        except struct.error:
            raise OverflowError from None
    packed = array("I")
    packed.fromlist(tokens)  # half again as fast as giving them to array()
    if sys.byteorder == "big":  # pragma: no cover - the hosts of our tests are little-endian
        packed.byteswap()
    return packed.tobytes()


def unpack_tokens(packed: bytes) -> list[int]:
    """Undo :func:`pack_tokens`."""
    return [token for (token,) in struct.iter_unpack("<I", packed)]
