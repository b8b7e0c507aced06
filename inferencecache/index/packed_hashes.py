"""A chain whose hashes have one width, kept packed as runs keep theirs.

A request of 512 blocks is 5 KiB on the wire and 512 objects as a list. Matching compares bytes and
looks at the first hash of each run it meets, so a chain that stays packed never becomes objects.
"""

from collections.abc import Iterator, Sequence
from typing import final, overload

from inferencecache.index.packing import OVERHEAD, unpack


@final
class PackedHashes(Sequence[bytes]):
    r"""A sequence of hashes over packed bytes; a hash becomes an object when asked for.

    >>> chain = PackedHashes(b"\x02ab\0" b"\x02cd\0", 2)
    >>> len(chain), chain[1], list(chain)
    (2, b'cd', [b'ab', b'cd'])

    Args:
        packed: Blocks of exactly *width* bytes each, see :mod:`inferencecache.index.packing`; kept
            as it is, and not to be changed afterwards.
        width: Hash width in bytes, 1 to :data:`~inferencecache.index.packing.WIDTH_MAX`.

    Attributes:
        packed: As given.
        stride: Bytes per packed block.
    """

    __slots__ = ("_length", "packed", "stride")

    def __init__(self, packed: bytes | bytearray, width: int) -> None:
        self.packed = packed
        self.stride = width + OVERHEAD
        self._length = len(packed) // self.stride

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        return iter(unpack(self.packed, self.stride))

    @overload
    def __getitem__(self, at: int) -> bytes: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[bytes]: ...

    def __getitem__(self, at: int | slice) -> bytes | Sequence[bytes]:
        stride = self.stride
        if isinstance(at, slice):
            start, stop, step = at.indices(self._length)
            if step == 1:
                return unpack(self.packed[start * stride : stop * stride], stride)
            return unpack(self.packed, stride)[at]
        if at < 0:
            at += self._length
        found = self.packed[at * stride + 1 : at * stride + stride - 1] if at >= 0 else b""
        if not found:
            raise IndexError(at)
        return bytes(found)
