"""What lanes send, as the client's values: removals and updates."""

from collections.abc import Iterable, Iterator

from inferencecache.events import ChainEntry, Delivery
from inferencecache.transport.client_values import CacheUpdate, HeldPrefix, Removal, ReplicaRef
from inferencecache.transport.delivery_lane import LaneParts, LaneRound

Round = list[tuple[LaneParts, LaneRound]]


def cleared(sending: Round) -> Iterator[ReplicaRef]:
    """Yield the replicas that *sending* clears."""
    for removal in clears(sending):
        yield removal.replica


def clears(sending: Round) -> Iterator[Removal]:
    """Yield the clears of *sending*."""
    for parts, lane in sending:
        if lane.delivery is not None and lane.delivery.has_clear:
            yield Removal(parts.replica, None)


def evictions(sending: Round) -> Iterator[Removal]:
    """Yield the evictions of *sending*."""
    for parts, lane in sending:
        if lane.delivery is not None:
            for eviction in lane.delivery.evictions:
                yield Removal(parts.replica, eviction.block_hash, eviction.adapter_id)


def updates(sending: Round, blocks_max: int) -> Iterator[CacheUpdate]:
    """Yield the updates of *sending*, of at most *blocks_max* blocks each.

    Each is about one adapter, whose name thus travels once per update and not once per chain.
    """
    for parts, lane in sending:
        if lane.stats is not None:
            yield CacheUpdate(
                replica=parts.replica, hash_scheme=parts.hash_scheme, stats=lane.stats
            )
        if lane.delivery is None:
            continue
        for adapter_id, chains in _by_adapter(lane.delivery.chains).items():
            delivery = Delivery(has_clear=False, evictions=[], chains=chains)
            for group in delivery.updates(blocks_max):
                yield _update(parts, adapter_id, group)


def stored(sending: Round) -> Iterator[Removal]:
    """Yield the eviction that would undo each store of *sending*."""
    for parts, lane in sending:
        if lane.delivery is not None:
            for entry in lane.delivery.chains:
                for block_hash in entry.block_hashes:
                    yield Removal(parts.replica, block_hash, entry.adapter_id)


def stored_hashes(sending: Round) -> Iterator[list[bytes]]:
    """Yield the keys that *sending* stores, chain by chain."""
    for _, lane in sending:
        if lane.delivery is not None:
            for entry in lane.delivery.chains:
                yield entry.block_hashes


def stored_keys(sending: Round) -> int:
    """Return how many keys *sending* stores."""
    return sum(map(len, stored_hashes(sending)))


def _by_adapter(chains: Iterable[ChainEntry]) -> dict[str, list[ChainEntry]]:
    groups: dict[str, list[ChainEntry]] = {}
    for entry in chains:
        groups.setdefault(entry.adapter_id, []).append(entry)
    return groups


def _update(parts: LaneParts, adapter_id: str, group: list[ChainEntry]) -> CacheUpdate:
    prefixes = [
        HeldPrefix(
            block_hashes=entry.block_hashes,
            block_token_counts=entry.block_token_counts(),
            tier=entry.tier,
        )
        for entry in group
    ]
    return CacheUpdate(
        replica=parts.replica,
        hash_scheme=parts.hash_scheme,
        prefixes=prefixes,
        adapter_id=adapter_id,
    )
