"""One report, taken apart into stretches of blocks that are stored alike.

What cannot be stored is dropped here and counted, so that the index sees only sound input: a chain
whose arrays differ in length, an entry without a hash or with a negative count, an identifier
beyond the limit. Dropping one entry never affects its neighbours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from inferencecache.index.packed_hashes import PackedHashes
from inferencecache.index.packing import pack_uniform
from inferencecache.index.run import OWN_TIER
from inferencecache.index.token_counts import TokenCounts, compact, cumulative
from inferencecache.types import COLDEST_TIER, StatsReport

_PACKED_BLOCKS_MAX: Final = 2_048
"""Longest stretch packed at once, and longest made of single prefixes; neither gives way."""


class DropReason(StrEnum):
    """Why something reported was not stored; a metric label."""

    MALFORMED_CHAIN = "malformed_chain"
    EMPTY_HASH = "empty_hash"
    NEGATIVE_COUNT = "negative_count"
    EMPTY_HASH_SCHEME = "empty_hash_scheme"
    IDENTIFIER_TOO_LONG = "identifier_too_long"
    BEFORE_CLEAR = "before_clear"
    STATS_LIMIT = "stats_limit"


@dataclass(slots=True)
class Stretch:
    """Blocks reported in a row with one tier and one adapter.

    Attributes:
        adapter_id: The partition's adapter, empty for the update's.
        tier: Storage tier, never 0.
        hashes: Block hashes.
        token_counts: Cumulative tokens up to each block, parallel to *hashes*.
        packed: The hashes packed, if all have one width and they are few; else empty.
    """

    adapter_id: str
    tier: int
    hashes: Sequence[bytes]
    token_counts: TokenCounts
    packed: bytes = b""

    def parts(self, size: int) -> Iterator["Stretch"]:
        """Yield this stretch in parts of at most *size* blocks.

        Complexity: O(blocks) in all.
        """
        if len(self.hashes) <= size:
            yield self
            return
        for start in range(0, len(self.hashes), size):
            stop = start + size
            hashes, counts = self.hashes[start:stop], self.token_counts[start:stop]
            yield Stretch(self.adapter_id, self.tier, hashes, counts)


class StateUpdate:
    """One CacheStateUpdate while it is being read.

    Args:
        tenant_id: Whose state it is.
        model_id: The model.
        replica_id: Who reports.
        hash_scheme: Domain of the hashes; without it no prefix is stored.
        timestamp_ns: Unix time of the report, 0 for now.
        adapter_id: Adapter of the entries that name none.

    Attributes:
        entries: Entries added.
        chain_blocks: Blocks of the chains among them.
        drops: Entries that cannot be stored, by reason.
        stretches: What is to be stored, once the update is closed.
        stats: The statistics that came with it, or None.
    """

    __slots__ = (
        "_counts",
        "_hashes",
        "_kind",
        "adapter_id",
        "chain_blocks",
        "drops",
        "entries",
        "hash_scheme",
        "model_id",
        "replica_id",
        "stats",
        "stretches",
        "tenant_id",
        "timestamp_ns",
    )

    def __init__(  # noqa: PLR0913 - one per field of the message
        self,
        *,
        tenant_id: str,
        model_id: str,
        replica_id: str,
        hash_scheme: str,
        timestamp_ns: int = 0,
        adapter_id: str = "",
    ) -> None:
        self.tenant_id = tenant_id
        self.model_id = model_id
        self.replica_id = replica_id
        self.hash_scheme = hash_scheme
        self.timestamp_ns = timestamp_ns
        self.stats: StatsReport | None = None
        self.drops: dict[DropReason, int] = {}
        self.entries = 0
        self.chain_blocks = 0
        self.adapter_id = adapter_id
        self.stretches: list[Stretch] = []
        self._kind: tuple[int, str] | None = None
        self._hashes: list[bytes] = []
        self._counts: list[int] = []

    def add_prefix(
        self, prefix_hash: bytes, token_count: int, tier: int = 0, adapter_id: str = ""
    ) -> None:
        """Add one prefix; prefixes that follow one another are stored together.

        Args:
            prefix_hash: Its hash; without one it is dropped.
            token_count: Cumulative tokens, dropped if negative.
            tier: Wire tier; 0 means T1, negative means colder than any other.
            adapter_id: Its adapter, empty for the update's.

        Complexity: O(1); now and then O(a bounded number of prefixes).
        """
        self.entries += 1
        if not prefix_hash or token_count < 0:
            self._drop(DropReason.NEGATIVE_COUNT if prefix_hash else DropReason.EMPTY_HASH)
            return
        kind = (tier, adapter_id)
        if kind != self._kind or len(self._hashes) == _PACKED_BLOCKS_MAX:
            self._close()
            self._kind = kind
        self._hashes.append(prefix_hash)
        self._counts.append(token_count)

    def add_prefixes(
        self,
        hashes: Sequence[bytes],
        token_counts: Sequence[int],
        tier: int = 0,
        adapter_id: str = "",
    ) -> None:
        """Add many prefixes of one tier and adapter at once.

        Args:
            hashes: Their hashes.
            token_counts: Their cumulative counts, parallel to *hashes*.
            tier: As for :meth:`add_prefix`.
            adapter_id: As for :meth:`add_prefix`.

        Complexity: O(prefixes), much less each than :meth:`add_prefix`.
        """
        packed = _packed(hashes)
        counts = compact(token_counts)
        lowest = counts[0] if isinstance(counts, range) else min(counts)
        if lowest < 0 or not (packed or all(hashes)):
            for prefix_hash, token_count in zip(hashes, token_counts, strict=True):
                self.add_prefix(prefix_hash, token_count, tier, adapter_id)
            return
        self._close()
        self.entries += len(hashes)
        self._append(hashes, counts, (tier, adapter_id), packed)

    def add_chain(  # noqa: PLR0913 - one per field of the message
        self,
        block_hashes: Sequence[bytes],
        block_token_counts: Sequence[int],
        *,
        tier: int = 0,
        adapter_id: str = "",
        prefix_hash: bytes = b"",
        token_count: int = 0,
    ) -> None:
        """Add a chain of blocks, and the whole prefix under its own hash if it has one.

        A chain of one block is that block's prefix, and is stored with those beside it.

        Args:
            block_hashes: The blocks in order.
            block_token_counts: Tokens of each block; stored cumulatively.
            tier: As for :meth:`add_prefix`.
            adapter_id: As for :meth:`add_prefix`.
            prefix_hash: Hash under which exact lookups find the whole prefix.
            token_count: Cumulative tokens for *prefix_hash*.

        Complexity: O(blocks).
        """
        if len(block_hashes) == len(block_token_counts) == 1 and not prefix_hash:
            self.add_prefix(block_hashes[0], block_token_counts[0], tier, adapter_id)
            return
        self.entries += 1
        packed = _packed(block_hashes)
        blocks = len(block_hashes)
        self.chain_blocks += blocks
        counts = cumulative(block_token_counts) if blocks == len(block_token_counts) > 0 else ()
        reason = _chain_fault(block_hashes, block_token_counts, packed, counts)
        if reason is None and prefix_hash and token_count < 0:
            reason = DropReason.NEGATIVE_COUNT
        if reason is not None:
            self._drop(reason)
            return
        self._close()
        kind = (tier, adapter_id)
        self._append(block_hashes, counts, kind, packed)
        if prefix_hash:
            self._append([prefix_hash], compact([token_count]), kind)

    def add_chain_slices(
        self,
        block_hashes: Sequence[bytes],
        block_token_counts: Sequence[int],
        kind: tuple[int, str],
        whole: tuple[bytes, int],
    ) -> Iterator[None]:
        """Add a chain of any length like :meth:`add_chain`, yielding between bounded slices.

        Args:
            block_hashes: The blocks in order.
            block_token_counts: Tokens of each block.
            kind: Tier and adapter.
            whole: Hash and cumulative tokens of the whole prefix.

        Complexity: O(blocks).
        """
        blocks, (prefix_hash, token_count) = len(block_hashes), whole
        if blocks <= _PACKED_BLOCKS_MAX or blocks != len(block_token_counts):
            tier, adapter_id = kind
            self.add_chain(
                block_hashes,
                block_token_counts[: blocks + 1],
                tier=tier,
                adapter_id=adapter_id,
                prefix_hash=prefix_hash,
                token_count=token_count,
            )
            return
        self.entries += 1
        self.chain_blocks += blocks
        self._close()
        begin, tokens = len(self.stretches), 0
        reason = DropReason.NEGATIVE_COUNT if prefix_hash and token_count < 0 else None
        for start in range(0, blocks, _PACKED_BLOCKS_MAX):
            stop = start + _PACKED_BLOCKS_MAX
            hashes, per_block = block_hashes[start:stop], list(block_token_counts[start:stop])
            packed = _packed(hashes)
            reason = reason or _chain_fault(hashes, per_block, packed, tuple(per_block))
            if reason is not None:
                del self.stretches[begin:]
                self._drop(reason)
                return
            per_block[0] += tokens
            counts = cumulative(per_block)
            tokens = counts[-1]
            self._append(hashes, counts, kind, packed)
            yield
        if prefix_hash:
            self._append([prefix_hash], compact([token_count]), kind)

    def close(self) -> None:
        """Finish the stretch that is being added to; nothing more is added afterwards.

        Complexity: O(prefixes of that stretch), which are bounded.
        """
        self._close()

    def _drop(self, reason: DropReason) -> None:
        self.drops[reason] = self.drops.get(reason, 0) + 1

    def _close(self) -> None:
        if self._kind is not None:
            hashes = self._hashes
            self._append(hashes, compact(self._counts), self._kind, _packed(hashes))
            self._kind = None
            self._hashes = []
            self._counts = []

    def _append(
        self,
        hashes: Sequence[bytes],
        counts: TokenCounts,
        kind: tuple[int, str],
        packed: bytes = b"",
    ) -> None:
        tier, adapter_id = kind
        stored_tier = tier if tier > 0 else OWN_TIER if tier == 0 else COLDEST_TIER
        self.stretches.append(Stretch(adapter_id, stored_tier, hashes, counts, packed))


def _packed(hashes: Sequence[bytes]) -> bytes:
    """Pack hashes of one width; what is stored in several slices is packed slice by slice."""
    if type(hashes) is PackedHashes:
        return bytes(hashes.packed)
    return pack_uniform(hashes) if 1 < len(hashes) <= _PACKED_BLOCKS_MAX else b""


def _chain_fault(
    hashes: Sequence[bytes], per_block: Sequence[int], packed: bytes, counts: TokenCounts
) -> DropReason | None:
    """Return why a chain cannot be stored; a range of *counts* proves those per block sound."""
    if not counts:
        return DropReason.MALFORMED_CHAIN
    if (counts[0] if isinstance(counts, range) else min(per_block)) < 0:
        return DropReason.NEGATIVE_COUNT
    return None if packed or all(hashes) else DropReason.EMPTY_HASH
