"""What the groups measure on: seeded chains, indexes filled with them, and an hour of churn."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from inferencecache.index import EventType, IndexEvent, PrefixIndex, StateUpdate
from inferencecache.settings.index import IndexSettings
from inferencecache.types import EvictionAlgorithm, PartitionKey

SEED = 20_261
TENANT = "team-a"
MODEL = "qwen3-32b"
SCHEME = "vllm"
KEY = PartitionKey(TENANT, MODEL, SCHEME, "")
BLOCK_TOKENS = 16
CHAIN_BLOCKS = 512
LOOKED_UP = 64
"""Chains that the load test looks up: the last ones the index was filled with."""

KEY_BYTES = 8
NS_PER_S = 1_000_000_000
START_NS = 1_800_000_000 * NS_PER_S
TTL_NS = 30 * 60 * NS_PER_S

Chain = list[bytes]


@dataclass(frozen=True, slots=True)
class FixedRules:
    """Every tenant alike: one TTL, no quota, LRU."""

    lifetime_ns: int = TTL_NS
    revision: int = 0

    def ttl_ns(self, tenant_id: str) -> int:  # noqa: ARG002 - the protocol's signature
        """Return the one TTL."""
        return self.lifetime_ns

    def quota(self, tenant_id: str) -> int | None:  # noqa: ARG002 - the protocol's signature
        """Return no quota."""
        return None

    def algorithm(self, tenant_id: str) -> EvictionAlgorithm:  # noqa: ARG002 - as above
        """Return LRU."""
        return EvictionAlgorithm.LRU


def chains(count: int, blocks: int = CHAIN_BLOCKS, seed: int = SEED) -> Iterator[Chain]:
    """Yield *count* chains of *blocks* keys; the same for the same arguments."""
    rng = random.Random(seed)
    for _ in range(count):
        data = rng.randbytes(KEY_BYTES * blocks)
        yield [data[at : at + KEY_BYTES] for at in range(0, len(data), KEY_BYTES)]


def counts_of(chain: Chain) -> list[int]:
    """Return per-block token counts."""
    return [BLOCK_TOKENS] * len(chain)


def new_index(entries_max: int = 0) -> PrefixIndex:
    """Return an empty index; 0 means no cap."""
    return PrefixIndex(IndexSettings(entries_max=entries_max), FixedRules())


def chain_update(replica_id: str, chain: Chain, counts: list[int] | None = None) -> StateUpdate:
    """Return a report of one chain."""
    update = StateUpdate(
        tenant_id=TENANT, model_id=MODEL, replica_id=replica_id, hash_scheme=SCHEME
    )
    update.add_chain(chain, counts or counts_of(chain))
    return update


def evicted(replica_id: str, block_hash: bytes) -> IndexEvent:
    """Return the event that a replica dropped a block."""
    return IndexEvent(
        type=EventType.PREFIX_EVICTED,
        tenant_id=TENANT,
        model_id=MODEL,
        replica_id=replica_id,
        prefix_hash=block_hash,
    )


def cleared(replica_id: str) -> IndexEvent:
    """Return the event that a replica dropped everything."""
    return IndexEvent(
        type=EventType.ALL_CLEARED, tenant_id=TENANT, model_id=MODEL, replica_id=replica_id
    )


@dataclass(slots=True)
class Filled:
    """An index with chains in it.

    Attributes:
        index: The index.
        chains: Chains that are wholly in it, oldest first, each with its replica.
        now_ns: The time of the last report.
    """

    index: PrefixIndex
    chains: list[tuple[str, Chain]]
    now_ns: int


def filled(blocks: int, *, replicas: int = 8, capped: bool = False) -> Filled:
    """Return an index of *blocks* blocks in chains of 512, reported over 15 minutes.

    Args:
        blocks: Blocks, rounded down to whole chains.
        replicas: Replicas that take turns; each chain has one holder.
        capped: Set the cap to exactly what is held, so that each new block evicts one.
    """
    count = blocks // CHAIN_BLOCKS
    index = new_index(count * CHAIN_BLOCKS if capped else 0)
    step_ns = 15 * 60 * NS_PER_S // count
    held: list[tuple[str, Chain]] = []
    now_ns = START_NS
    for number, chain in enumerate(chains(count)):
        replica_id = f"replica-{number % replicas}"
        index.report(chain_update(replica_id, chain), now_ns)
        held.append((replica_id, chain))
        now_ns += step_ns
    return Filled(index, held, now_ns)


def churned(blocks: int, *, replicas: int = 8) -> Filled:
    """Return a capped index of *blocks* blocks after one simulated hour.

    Each simulated second stores what turns the index over once per half hour, half of it behind a
    shared prefix; reports a part of an earlier chain again from another replica; and evicts the
    tail and one random block of an earlier chain. A sweep runs every minute. At the end new chains
    fill half of the index; they are the ones listed.
    """
    rng = random.Random(SEED + 1)
    state = filled(blocks, replicas=replicas, capped=True)
    index, recent = state.index, state.chains
    per_second = max(1, round(len(recent) / 1_800))
    interval = max(1, round(1_800 / len(recent)))
    fresh = chains(3_600 * per_second + 8, seed=SEED + 2)
    shared = [next(fresh)[:64] for _ in range(8)]
    for second in range(1, 3_600):
        now_ns = state.now_ns + second * NS_PER_S
        for _ in range(per_second if second % interval == 0 else 0):
            chain = next(fresh)
            if rng.random() < 0.5:
                chain = rng.choice(shared) + chain[64:]
            replica_id = f"replica-{rng.randrange(replicas)}"
            index.report(chain_update(replica_id, chain), now_ns)
            recent.append((replica_id, chain))
            _disturb(index, recent, rng, now_ns)
        if second % 60 == 0:
            index.sweep(now_ns)
    now_ns = state.now_ns + 3_600 * NS_PER_S
    untouched: list[tuple[str, Chain]] = []
    for number, chain in enumerate(chains(blocks // CHAIN_BLOCKS // 2, seed=SEED + 3)):
        replica_id = f"replica-{number % replicas}"
        index.report(chain_update(replica_id, chain), now_ns + number)
        untouched.append((replica_id, chain))
    return Filled(index, untouched, now_ns + len(untouched))


def _disturb(
    index: PrefixIndex, recent: list[tuple[str, Chain]], rng: random.Random, now_ns: int
) -> None:
    """Report part of an earlier chain from elsewhere, and evict a tail and a middle block."""
    _, again = rng.choice(recent[-200:])
    replica_id = f"replica-{rng.randrange(8)}"
    index.report(chain_update(replica_id, again[: rng.randrange(1, len(again))]), now_ns)
    owner, victim = rng.choice(recent[-200:])
    for position in (len(victim) - 1, rng.randrange(len(victim))):
        index.apply(evicted(owner, victim[position]), now_ns)
