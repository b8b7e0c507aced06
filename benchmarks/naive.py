"""The yardstick: the same job with a dict of dicts, one record per (block, replica).

Written for speed as far as the structure allows; what it must scan, it scans with one `min` or one
comprehension. One partition, chains only. `tests/models/naive_index.py` is the model that is right
in every corner; this one is the model that is not slower than it has to be.
"""

from collections.abc import Iterable

Record = tuple[int, int, int]
"""(last_seen_ns, token_count, tier)"""

Match = tuple[str, int, int, int]
"""(replica_id, matched tokens, oldest last_seen_ns, coldest tier)"""


class NaiveIndex:
    """Block hash to replica to record."""

    def __init__(self) -> None:
        self.table: dict[bytes, dict[str, Record]] = {}
        self.entries = 0

    def report(self, replica_id: str, hashes: list[bytes], counts: list[int], now_ns: int) -> None:
        """Store a chain; complexity: O(blocks)."""
        table = self.table
        tokens = 0
        for block_hash, count in zip(hashes, counts, strict=True):
            tokens += count
            holders = table.get(block_hash)
            if holders is None:
                table[block_hash] = {replica_id: (now_ns, tokens, 1)}
                self.entries += 1
            else:
                self.entries += replica_id not in holders
                holders[replica_id] = (now_ns, tokens, 1)

    def report_prefix(self, replica_id: str, block_hash: bytes, record: Record) -> None:
        """Store one block; complexity: O(1)."""
        holders = self.table.get(block_hash)
        if holders is None:
            holders = self.table[block_hash] = {}
        self.entries += replica_id not in holders
        holders[replica_id] = record

    def evict(self, replica_id: str, block_hash: bytes) -> None:
        """Remove one record; complexity: O(1)."""
        holders = self.table.get(block_hash)
        if holders is not None and holders.pop(replica_id, None) is not None:
            self.entries -= 1
            if not holders:
                del self.table[block_hash]

    def evict_oldest(self) -> None:
        """Make room for one; complexity: O(records)."""
        _, block_hash, replica_id = min(
            (record[0], block_hash, replica_id)
            for block_hash, holders in self.table.items()
            for replica_id, record in holders.items()
        )
        self.evict(replica_id, block_hash)

    def clear(self, replica_id: str) -> None:
        """Remove a replica; complexity: O(records)."""
        self._remove([(replica_id, key) for key, held in self.table.items() if replica_id in held])

    def sweep(self, stale_ns: int) -> None:
        """Remove what was last seen at or before *stale_ns*; complexity: O(records)."""
        self._remove(
            [
                (replica_id, block_hash)
                for block_hash, holders in self.table.items()
                for replica_id, record in holders.items()
                if record[0] <= stale_ns
            ]
        )

    def _remove(self, victims: Iterable[tuple[str, bytes]]) -> None:
        for replica_id, block_hash in victims:
            self.evict(replica_id, block_hash)

    def match_chain(self, hashes: list[bytes], counts: list[int], stale_ns: int) -> list[Match]:
        """Return how far each fresh holder of the first block goes; O(blocks x holders)."""
        alive: dict[str, tuple[int, int]] = {}
        ended: list[Match] = []
        tokens = 0
        for position, (block_hash, count) in enumerate(zip(hashes, counts, strict=True)):
            holders = self.table.get(block_hash, {})
            if not position:
                alive = {r: (rec[0], rec[2]) for r, rec in holders.items() if rec[0] > stale_ns}
            else:
                for replica_id, (oldest, coldest) in list(alive.items()):
                    record = holders.get(replica_id)
                    if record is None or record[0] <= stale_ns:
                        ended.append((replica_id, tokens, oldest, coldest))
                        del alive[replica_id]
                    elif record[0] < oldest or record[2] > coldest:
                        alive[replica_id] = (min(oldest, record[0]), max(coldest, record[2]))
            if not alive:
                break
            tokens += count
        ended += [(r, tokens, oldest, coldest) for r, (oldest, coldest) in alive.items()]
        return ended
