"""What is remembered of one engine block.

A block's place in its prompt is its *chain* value, the prefix hash at the last boundary of the
index's blocks, and the tokens since then. For an engine whose blocks equal the index's, chain is
the block's only key and nothing else is kept::

    index blocks of 4, engine blocks of 2 (pages):

    tokens   0 1 | 2 3 | 4 5 | 6 7 | 8 9
    page      a     b     c     d     e
    chain     -    K1    K1    K2    K2        a: nothing complete yet
    tail     0 1    -    4 5    -    8 9        what a child needs to go on
    keys      -    K1     -    K2     -

K1 needs both *a* and *b*: when *a* goes, its children inside the same index block go with it.
"""

from collections.abc import Iterable
from typing import Final, Protocol

import msgspec

from inferencecache.events.mediums import tier_of
from inferencecache.events.stretch import Stretch
from inferencecache.types import CacheTier

_BRANCHES_MIN: Final = 64


class HeldHashes(Protocol):
    """Tells which blocks are held."""

    def __contains__(self, engine_hash: int, /) -> bool:
        """Tell whether a block is held."""
        ...


class Branches(msgspec.Struct, gc=False):
    """Children of a block that has had several.

    Attributes:
        hashes: Their engine hashes; some may be gone, never more than half and a few.
        room: How many there may be before those that are gone are forgotten.
    """

    hashes: set[int]
    room: int = _BRANCHES_MIN

    def add(self, engine_hash: int, held: HeldHashes) -> None:
        """Note one more; *held* tells which are still there.

        Complexity:
            Constant, on average over many calls.
        """
        self.hashes.add(engine_hash)
        if len(self.hashes) > self.room:
            self.hashes = {known for known in self.hashes if known in held}
            self.room = max(_BRANCHES_MIN, 2 * len(self.hashes))


class Detail(msgspec.Struct, gc=False):
    """What only unusual blocks have.

    Attributes:
        keys: The index keys this block completes, in order.
        tail: Tokens after the last boundary, 4 bytes little-endian each.
        children: Engine hashes that continue *tail*, removed together with this block; usually one,
            which is then kept without a set around it.
        is_opaque: The tokens do not describe the content; nothing here or below is indexed.
    """

    keys: tuple[int, ...] = ()
    tail: bytes = b""
    children: int | Branches | None = None
    is_opaque: bool = False

    def all_children(self) -> Iterable[int]:
        """Return the engine hashes that continue *tail*; some may not be held any more."""
        children = self.children
        if children is None:
            return ()
        return (children,) if isinstance(children, int) else children.hashes

    def add_child(self, engine_hash: int, held: HeldHashes) -> None:
        """Note that *engine_hash*, one of those *held*, continues *tail*."""
        children = self.children
        if children is None or children == engine_hash:
            self.children = engine_hash
        elif isinstance(children, int):
            self.children = Branches({children, engine_hash})
        else:
            children.add(engine_hash, held)


class Block(msgspec.Struct, gc=False):
    """One block that the engine holds somewhere.

    Millions of these exist at once, so they stay outside the garbage collector; nothing in one
    can refer back to it.

    Attributes:
        chain: Prefix hash at the last index boundary; None before the first.
        tokens: Tokens from the prompt's start to this block's end.
        stretch: Where it stands in its group's order; also names the partition of the index.
        holding: Copies per medium, see ``mediums``; 0 once the block is gone.
        parent_chain: Prefix hash before this block's first key; None at the start.
        detail: None for a block whose only key is *chain*.
    """

    chain: int | None
    tokens: int
    stretch: Stretch
    holding: int
    parent_chain: int | None
    detail: Detail | None

    @property
    def adapter_id(self) -> str:
        """Partition of the index."""
        return self.stretch.adapter_id

    @property
    def keys(self) -> tuple[int, ...]:
        """The index keys this block completes, in order."""
        if self.detail is not None:
            return self.detail.keys
        return () if self.chain is None else (self.chain,)

    @property
    def tail(self) -> bytes:
        """Packed tokens after the last boundary."""
        return b"" if self.detail is None else self.detail.tail

    @property
    def tier(self) -> CacheTier:
        """The best tier among its copies."""
        return tier_of(self.holding)

    @property
    def is_opaque(self) -> bool:
        """Whether nothing below it may be indexed."""
        return self.detail is not None and self.detail.is_opaque


class SharedCounts:
    """Token counts as shared integers, since many blocks end at the same depth."""

    COUNTS_MAX = 1 << 20

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    @property
    def held(self) -> int:
        """Integers kept for sharing."""
        return len(self._counts)

    def share(self, count: int) -> int:
        """Return *count* itself or an equal integer that is already in use."""
        return self.in_use().setdefault(count, count)

    def in_use(self) -> dict[int, int]:
        """Return the live mapping from count to integer, with room for those of one batch."""
        if len(self._counts) >= self.COUNTS_MAX:
            self._counts.clear()
        return self._counts
