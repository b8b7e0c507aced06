"""Drive a prefix index in a few words, with rules a test can change."""

from collections.abc import Sequence

from inferencecache.index import EventType, IndexEvent, PrefixIndex, StateUpdate
from inferencecache.types import EvictionAlgorithm, PartitionKey

KEY = PartitionKey("t", "m", "vllm", "")


class DriverRules:
    """Tenant rules held in plain attributes."""

    def __init__(self) -> None:
        self.revision = 0
        self.ttl = 1_000
        self.quotas: dict[str, int] = {}
        self.lfu: set[str] = set()

    def ttl_ns(self, tenant_id: str) -> int:  # noqa: ARG002 - the protocol names it
        """Return the same time to live for everybody."""
        return self.ttl

    def quota(self, tenant_id: str) -> int | None:
        """Return the quota set by the test."""
        return self.quotas.get(tenant_id)

    def algorithm(self, tenant_id: str) -> EvictionAlgorithm:
        """Return LFU for the tenants the test named."""
        return EvictionAlgorithm.LFU if tenant_id in self.lfu else EvictionAlgorithm.LRU


class IndexDriver:
    """Short words for what a replica does."""

    def __init__(self, index: PrefixIndex) -> None:
        self.index = index

    def report(
        self, replica: str, blocks: Sequence[bytes], now: int, *, tenant: str = "t", **wire: int
    ) -> None:
        """Report a chain of 16-token blocks."""
        update = StateUpdate(
            tenant_id=tenant,
            model_id="m",
            replica_id=replica,
            hash_scheme="vllm",
            timestamp_ns=wire.get("stamp", 0),
        )
        update.add_chain(list(blocks), [16] * len(blocks), tier=wire.get("tier", 0))
        self.index.report(update, now)
        self.index.check_invariants()

    def event(self, kind: EventType, replica: str, now: int, block: bytes = b"") -> None:
        """Publish an event."""
        self.index.apply(
            IndexEvent(
                type=kind, tenant_id="t", model_id="m", replica_id=replica, prefix_hash=block
            ),
            now,
        )
        self.index.check_invariants()

    def depths(self, blocks: Sequence[bytes], now: int) -> dict[str, int]:
        """Return the matched blocks of each replica."""
        counts = [16] * len(blocks)
        return {c[0]: c[4] for c in self.index.match_chain(KEY, list(blocks), counts, now)}
