"""Raw matches for the picker: how much of a prompt each replica holds, by the index alone.

What LookupRoute adds is left out on purpose: floors, and scores that vanish where every replica has
the same prefix. Whoever estimates times needs the number of tokens, not a ranking. What a tenant's
policy keeps from lookups is therefore no matter here; the reserved tenant is told nothing.
"""

from collections.abc import Generator, Iterable

from inferencecache.clock import Clock
from inferencecache.index import PackedHashes, PrefixIndex
from inferencecache.index.packing import OVERHEAD
from inferencecache.picker.prefix.block_keys import CacheDomain
from inferencecache.picker.prefix.index_source import (
    NOTHING_HELD,
    IndexFlaw,
    IndexFound,
    IndexMatch,
    IndexQuestion,
)
from inferencecache.service.in_tiers import InTiers
from inferencecache.service.match_slices import SlicedMatch, piece_of
from inferencecache.settings.lookup import LookupSettings
from inferencecache.types import PROBE_TENANT_ID, Candidate, PartitionKey, Scope

_HASH_BYTES = 8
_COUNT_BYTES_MAX = 255
_IN_ONE = IndexMatch(0, 0).tiers


class IndexMatches:
    """Asks an index in this process.

    Args:
        index: The prefix index.
        clock: The time of day, by which entries expire.
        settings: How long a chain may be, and how much of it is matched in one go.
    """

    __slots__ = ("_blocks_max", "_clock", "_index", "_packed", "_slice_blocks")

    def __init__(self, index: PrefixIndex, clock: Clock, settings: LookupSettings) -> None:
        self._index = index
        self._clock = clock
        self._blocks_max = settings.chain_blocks_max
        self._slice_blocks = settings.match_slice_blocks
        self._packed = (b"", packed(b""))

    def at_once(self, question: IndexQuestion) -> IndexFound | None:
        """Return who holds what, None where it takes more than one slice.

        Complexity: as :meth:`~inferencecache.index.PrefixIndex.match_chain`, plus O(blocks) to pack
        them.
        """
        if len(question.hashes) > self._slice_blocks * _HASH_BYTES:
            return None
        key, hashes, counts = self._chain(question)
        now_ns = self._clock.now_ns()
        candidates = self._index.match_chain(key, hashes, counts, now_ns)
        tiers = InTiers(candidates)
        if tiers.are_asked:
            tiers.add(self._index.match_tiers(key, hashes, now_ns), len(hashes))
        return self._found(key, candidates, tiers)

    def steps(self, question: IndexQuestion) -> Generator[None, None, IndexFound]:
        """Return who holds what, giving way between bounded slices.

        Complexity: as :meth:`at_once`; O(1) where nobody holds even the first block.
        """
        now_ns = self._clock.now_ns()
        if not self._holds_first(question, now_ns):
            return self._found(PartitionKey(*question.domain), (), InTiers(()))
        key, hashes, counts = self._chain(question)
        match = SlicedMatch(self._index, key, (hashes, counts), now_ns, self._slice_blocks)
        while match.step():
            yield
        candidates = match.candidates()
        tiers = InTiers(candidates)
        while tiers.are_asked:
            yield
            piece = piece_of(hashes, tiers.at, tiers.at + self._slice_blocks)
            tiers.add(self._index.match_tiers(key, piece, now_ns), len(piece))
        return self._found(key, candidates, tiers)

    def credit(self, question: IndexQuestion, replica_id: str, tokens: int) -> None:
        """Count a Pick that goes by a match as one use of it; only LFU tenants are counted.

        Args:
            question: What was asked.
            replica_id: Where the request goes.
            tokens: What it holds of the prompt.

        Complexity: O(1) for LRU tenants, else as :meth:`~inferencecache.index.PrefixIndex.credit`.
        """
        if self._index.counts_use(question.domain.tenant_id):
            key, hashes, _ = self._chain(question)
            self._index.credit(key, hashes, {replica_id: tokens // question.block_tokens})

    def _holds_first(self, question: IndexQuestion, now_ns: int) -> bool:
        """Return whether anybody has the first block: to pack a long prompt takes 0.1 ms."""
        key, first = PartitionKey(*question.domain), [question.hashes[:_HASH_BYTES]]
        return bool(self._index.match_chain(key, first, b"\1", now_ns))

    def _chain(
        self, question: IndexQuestion
    ) -> tuple[PartitionKey, PackedHashes, bytes | list[int]]:
        hashes = self._packed_once(question.hashes[: self._blocks_max * _HASH_BYTES])
        tokens = question.block_tokens
        is_small = tokens <= _COUNT_BYTES_MAX
        counts = bytes((tokens,)) * len(hashes) if is_small else [tokens] * len(hashes)
        return PartitionKey(*question.domain), hashes, counts

    def _packed_once(self, hashes: bytes) -> PackedHashes:
        """Return *hashes* packed; several questions of one Pick are about the same object."""
        if hashes is not self._packed[0]:
            self._packed = (hashes, packed(hashes))
        return self._packed[1]

    def _found(
        self, key: PartitionKey, candidates: Iterable[Candidate], tiers: InTiers
    ) -> IndexFound:
        if key.tenant_id == PROBE_TENANT_ID:
            return IndexFound(flaw=IndexFlaw.UNKNOWN_TENANT)
        made = tuple.__new__  # as the constructor does, but without a call of a Python function
        matches = {
            replica_id: made(IndexMatch, (tokens, tier, _IN_ONE))
            for replica_id, tokens, _, tier, _ in candidates
        }
        for replica_id, blocks in tiers.several():
            matches[replica_id] = matches[replica_id]._replace(tiers=blocks)
        if matches:
            return IndexFound(matches=matches)
        flaw = self._flaw(CacheDomain(*key))
        return NOTHING_HELD if flaw is None else IndexFound(flaw=flaw)

    def _flaw(self, domain: CacheDomain) -> IndexFlaw | None:
        """Return which key the index has never heard of, outermost first; none if it is empty."""
        index, tenant_id, model_id = self._index, domain.tenant_id, domain.model_id
        if index.is_empty():
            return None
        if not index.has_tenant(tenant_id):
            return IndexFlaw.UNKNOWN_TENANT
        if not index.has_model(tenant_id, model_id):
            return IndexFlaw.UNKNOWN_MODEL
        if not index.serving_count(Scope(tenant_id, model_id, domain.hash_scheme)):
            return IndexFlaw.UNKNOWN_HASH_SCHEME
        return None


def packed(hashes: bytes) -> PackedHashes:
    r"""Return hashes of 8 bytes, which stand side by side, as the index compares them.

    >>> list(packed(b"one hashanother."))
    [b'one hash', b'another.']

    Complexity: O(n).
    """
    blocks = len(hashes) // _HASH_BYTES
    stride = _HASH_BYTES + OVERHEAD
    content = bytearray(blocks * stride)
    content[::stride] = bytes((_HASH_BYTES,)) * blocks
    for at in range(_HASH_BYTES):
        content[at + 1 :: stride] = hashes[at : blocks * _HASH_BYTES : _HASH_BYTES]
    return PackedHashes(content, _HASH_BYTES)
