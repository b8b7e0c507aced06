"""Reports into the index, in process.

Workload: chains of 512 blocks from one replica. New: 200 chains into an index that holds none of
them; refresh: the same again, later; single entries: one protobuf entry per block, from the bytes
of the message to the index. Each chain is timed once, the median chain counts. Seed:
``workload.SEED``.
Budget: a few seconds.
"""

import statistics
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.measure import each_us, require
from benchmarks.naive import NaiveIndex
from benchmarks.options import Options
from benchmarks.row import Bound, Row
from benchmarks.workload import (
    BLOCK_TOKENS,
    CHAIN_BLOCKS,
    MODEL,
    NS_PER_S,
    SCHEME,
    START_NS,
    TENANT,
    Chain,
    chain_update,
    chains,
    counts_of,
    new_index,
)
from inferencecache.index import PrefixIndex
from inferencecache.transport.convert_report import state_update
from inferencecache.v1alpha1.inferencecache_pb2 import CACHE_TIER_T1, CacheStateUpdate

REPLICA = "replica-0"


def run(options: Options) -> Iterator[Row]:
    """Yield the rows of ingest."""
    held = list(chains(50 if options.quick else 400))
    index, naive = new_index(), NaiveIndex()
    counts = counts_of(held[0])
    for what, target, start_ns in (
        ("ingest of 512-block chains, new blocks", 3e6, START_NS),
        ("ingest of 512-block chains, refresh of known", 50e6, START_NS + NS_PER_S),
    ):
        yield Row(
            what=what,
            unit="blocks/s",
            value=_blocks_per_s(_reports(index, held, counts, start_ns)),
            bound=Bound.AT_LEAST,
            target=target,
            naive=_blocks_per_s(_naive_reports(naive, held, counts, start_ns)),
        )
    require(index.entries == len(held) * CHAIN_BLOCKS, "all blocks are held")
    yield from _single_entries(held)


def _blocks_per_s(calls: Iterator[Callable[[], object]]) -> float:
    return CHAIN_BLOCKS * 1e6 / statistics.median(each_us(calls))


def _reports(
    index: PrefixIndex, held: list[Chain], counts: list[int], start_ns: int
) -> Iterator[Callable[[], object]]:
    def report(chain: Chain, now_ns: int) -> None:
        index.report(chain_update(REPLICA, chain, counts), now_ns)

    for number, chain in enumerate(held):
        yield partial(report, chain, start_ns + number)


def _naive_reports(
    naive: NaiveIndex, held: list[Chain], counts: list[int], start_ns: int
) -> Iterator[Callable[[], object]]:
    for number, chain in enumerate(held):
        yield partial(naive.report, REPLICA, chain, counts, start_ns + number)


def _single_entries(held: list[Chain]) -> Iterator[Row]:
    messages = [_serialized(chain) for chain in held]
    index, naive = new_index(), NaiveIndex()
    for what, now_ns in (("new blocks", START_NS), ("refresh of known", START_NS + NS_PER_S)):
        ours = (partial(_store, index, data, now_ns) for data in messages)
        plain = (partial(_naive_store, naive, data, now_ns) for data in messages)
        yield Row(
            what=f"ingest, one entry per block, message to index, {what}",
            unit="blocks/s",
            value=_blocks_per_s(ours),
            bound=Bound.AT_LEAST,
            target=500e3,
            naive=_blocks_per_s(plain),
        )
    require(index.entries == len(held) * CHAIN_BLOCKS, "all blocks are held")


def _serialized(chain: Chain) -> bytes:
    update = CacheStateUpdate(
        replica_id=REPLICA, model_id=MODEL, tenant_id=TENANT, hash_scheme=SCHEME
    )
    for position, block_hash in enumerate(chain):
        tokens = BLOCK_TOKENS * (position + 1)
        update.prefixes.add(prefix_hash=block_hash, token_count=tokens, tier=CACHE_TIER_T1)
    return update.SerializeToString()


def _store(index: PrefixIndex, data: bytes, now_ns: int) -> None:
    update = state_update(data)
    if update is None:
        raise ValueError(data)
    index.report(update, now_ns)


def _naive_store(naive: NaiveIndex, data: bytes, now_ns: int) -> None:
    message = CacheStateUpdate.FromString(data)
    for entry in message.prefixes:
        record = (now_ns, entry.token_count, entry.tier or CACHE_TIER_T1)
        naive.report_prefix(REPLICA, entry.prefix_hash, record)
