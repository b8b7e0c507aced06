"""In which tiers the blocks of a match lie.

A match tells only the coldest of them, which is enough for nearly all: who asks here has met one
that is not the replica's own cache, and has its chain walked a second time.
"""

from collections.abc import Mapping, Sequence

from inferencecache.index.match import Request
from inferencecache.index.partition import Partition
from inferencecache.index.run import Incarnation


def match_tiers(
    partition: Partition, hashes: Sequence[bytes], stale_ns: int
) -> dict[str, dict[int, int]]:
    """Return by replica how many leading blocks of a chain it holds in which tier.

    Args:
        partition: Where to look.
        hashes: The request's blocks, at least one.
        stale_ns: Stamps at or before this have outlived their TTL.

    Complexity: as :func:`~inferencecache.index.match.match_chain` of several runs.
    """
    get_run, request = partition.run_of.get, Request(partition, hashes)
    found: dict[str, dict[int, int]] = {}
    alive: Mapping[Incarnation, int] | None = None
    run, at = get_run(hashes[0]), 0
    while run is not None:
        alive = {
            who: hold.tier
            for who, hold in run.holds.items()
            if (alive is None or who in alive)
            and hold.last_seen_ns > stale_ns
            and not who.is_cleared
        }
        if not alive:
            break
        blocks = request.extent(run, at)
        for who, tier in alive.items():
            tiers = found.setdefault(who.replica_id, {})
            tiers[tier] = tiers.get(tier, 0) + blocks
        at += blocks
        run = get_run(hashes[at]) if at < len(hashes) else None
    return found
