"""A cache plane with a standing clock and the shorthand in which cases from the field are told."""

from collections.abc import Sequence

from plane_target import PlaneTarget

from inferencecache.fingerprint import chain
from inferencecache.v1alpha1 import inferencecache_pb2 as wire

BLOCK_TOKENS = 16
START_S = 1_767_225_600
US_PER_S = 1_000_000
PLACE = {"tenant_id": "t1", "model_id": "m1"}


def keys(tokens: int) -> list[bytes]:
    """Return the prefix keys of the tokens 1 to *tokens*."""
    return chain(range(1, tokens + 1), BLOCK_TOKENS)


class FieldRig:
    """Tenant ``t1``, model ``m1``, scheme ``vllm``; blocks of 16 tokens; times in seconds.

    Args:
        ttl_s: Default time to live.
        max_entries: The cap.
        clear_fence: Whether reports from before a clear are dropped.
        engine_block_size: Tokens per block of the engines.
    """

    def __init__(
        self,
        *,
        ttl_s: int = 1800,
        max_entries: int = 1_000_000,
        clear_fence: bool = True,
        engine_block_size: int = BLOCK_TOKENS,
    ) -> None:
        config = {"ttl_s": ttl_s, "max_entries": max_entries, "clear_fence": clear_fence}
        self.target = PlaneTarget(config | {"engine_block_size": engine_block_size})
        self.index = self.target.plane.index
        self.now_s = 0.0
        self.move_to(0)

    def move_to(self, now_s: float) -> None:
        """Set the clock."""
        self.now_s = now_s
        self.target.set_time(stamp_us(now_s))

    def report(
        self,
        replica_id: str,
        blocks: Sequence[bytes] = (),
        *,
        stamp_s: float | None = None,
        hash_scheme: str = "vllm",
        tenant_id: str = "t1",
        stats: wire.ReplicaStats | None = None,
    ) -> None:
        """Report a chain, stamped *stamp_s* or by the server."""
        update = wire.CacheStateUpdate(
            replica_id=replica_id,
            model_id="m1",
            tenant_id=tenant_id,
            hash_scheme=hash_scheme,
            timestamp_us=0 if stamp_s is None else stamp_us(stamp_s),
            stats=stats,
        )
        if blocks:
            counts = [BLOCK_TOKENS] * len(blocks)
            update.prefixes.add(block_hashes=blocks, block_token_counts=counts)
        self.target.report(update)

    def publish(
        self, kind: int, replica_id: str, block: bytes = b"", *, stamp_s: float | None = None
    ) -> None:
        """Publish an event."""
        timestamp_us = 0 if stamp_s is None else stamp_us(stamp_s)
        self.target.publish(
            wire.CacheEvent(
                type=kind,
                replica_id=replica_id,
                prefix_hash=block,
                timestamp_us=timestamp_us,
                **PLACE,
            )
        )

    def evict(self, replica_id: str, block: bytes) -> None:
        """Publish PREFIX_EVICTED."""
        self.publish(wire.CacheEvent.PREFIX_EVICTED, replica_id, block)

    def clear(self, replica_id: str, *, stamp_s: float | None = None) -> None:
        """Publish ALL_CLEARED."""
        self.publish(wire.CacheEvent.ALL_CLEARED, replica_id, stamp_s=stamp_s)

    def look_up(self, blocks: Sequence[bytes]) -> wire.LookupRouteResponse:
        """Look a chain up."""
        counts = [BLOCK_TOKENS] * len(blocks)
        return self.ask(block_hashes=blocks, block_token_counts=counts)

    def ask(self, **fields: object) -> wire.LookupRouteResponse:
        """Look up whatever the request says."""
        place = PLACE | {"hash_scheme": "vllm"}
        return self.target.look_up(wire.LookupRouteRequest(**(place | fields)))

    def matched(self, blocks: Sequence[bytes]) -> dict[str, int]:
        """Return the matched tokens by replica; nothing unless the answer is PREFIX_MATCH."""
        answer = self.look_up(blocks)
        if answer.reason_code != "PREFIX_MATCH":
            return {}
        return {score.replica_id: score.matched_tokens for score in answer.replica_scores}


def stamp_us(now_s: float) -> int:
    """Return a time of the rig as Unix microseconds."""
    return int((START_S + now_s) * US_PER_S)
