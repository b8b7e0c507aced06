"""Chain lookups in the index, in process.

Workload: a request whose whole chain the holders have; 512 blocks with 16 holders, 8,192 blocks
with 16 holders, each as a list of hashes and packed, as the server hands a request down; 512 blocks
with 128 holders scored and sorted; and 512 blocks that are each a run of their own because 16
holders reported each block at another time. Seed: ``workload.SEED``. Budget: 1 s per timing.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from benchmarks.measure import median_us, require
from benchmarks.naive import NaiveIndex
from benchmarks.options import Options
from benchmarks.peer import SKIP_NOTE, load_peer, numbers
from benchmarks.row import Bound, Row
from benchmarks.workload import (
    KEY,
    KEY_BYTES,
    NS_PER_S,
    SEED,
    START_NS,
    TTL_NS,
    Chain,
    chain_update,
    chains,
    counts_of,
    new_index,
)
from inferencecache.index import PackedHashes, PrefixIndex
from inferencecache.index.packing import pack_uniform
from inferencecache.ranking import RankInputs, rank_matches
from inferencecache.settings.ranking import RankingSettings
from inferencecache.types import Scope

NOW_NS = START_NS + 60 * NS_PER_S


def run(options: Options) -> Iterator[Row]:
    """Yield the rows of chain lookups."""
    yield from _shared(options, blocks=512, holders=16, target_us=10)
    yield from _shared(options, blocks=8_192, holders=16, target_us=100)
    yield _scored(options, blocks=512, holders=128)
    yield _fragmented(options, blocks=512, holders=16)


def _shared(options: Options, *, blocks: int, holders: int, target_us: float) -> Iterator[Row]:
    (chain,) = chains(1, blocks)
    index, naive = _held_alike(chain, holders)
    counts = counts_of(chain)
    found = index.match_chain(KEY, chain, counts, NOW_NS)
    require([c[4] for c in found] == [blocks] * holders, "every holder matches the whole chain")
    peer_us, note = _peer_us(options, chain, holders)
    naive_us = median_us(_naive_match(naive, chain, counts), options.budget_s)
    packed = PackedHashes(pack_uniform(chain), KEY_BYTES)
    for form, call in (
        ("a list", _match(index, chain, counts)),
        ("packed", _match(index, packed, bytes(counts))),
    ):
        yield Row(
            what=f"chain match, {blocks:,} blocks, {holders} holders of all, {form}",
            unit="us",
            value=median_us(call, options.budget_s),
            bound=Bound.AT_MOST,
            target=target_us,
            naive=naive_us,
            peer=peer_us,
            peer_ratio_max=0.5,
            note=note,
        )


def _match(
    index: PrefixIndex, chain: Sequence[bytes], counts: Sequence[int]
) -> Callable[[], object]:
    return partial(index.match_chain, KEY, chain, counts, NOW_NS)


def _naive_match(naive: NaiveIndex, chain: Chain, counts: list[int]) -> Callable[[], object]:
    return partial(naive.match_chain, chain, counts, NOW_NS - TTL_NS)


def _held_alike(chain: Chain, holders: int) -> tuple[PrefixIndex, NaiveIndex]:
    index, naive = new_index(), NaiveIndex()
    for number in range(holders):
        seen_ns = START_NS + number * NS_PER_S // 4
        index.report(chain_update(f"replica-{number}", chain), seen_ns)
        naive.report(f"replica-{number}", chain, counts_of(chain), seen_ns)
    return index, naive


def _peer_us(options: Options, chain: Chain, holders: int) -> tuple[float | None, str]:
    peer = load_peer()
    if peer is None:
        return None, SKIP_NOTE
    keys = numbers(chain)
    for worker in range(holders):
        peer.report(worker, keys)
    require(peer.depths(keys) == [len(chain)] * holders, "the peer finds every holder")
    return median_us(peer.match(keys), options.budget_s), ""


def _scored(options: Options, *, blocks: int, holders: int) -> Row:
    (chain,) = chains(1, blocks)
    index, naive = _held_alike(chain, holders)
    counts = counts_of(chain)
    settings = RankingSettings()

    def lookup() -> object:
        inputs = RankInputs(
            now_ns=NOW_NS,
            ttl_ns=TTL_NS,
            serving_count=index.serving_count(Scope(*KEY[:3])),
            stats=index.stats_of(KEY.tenant_id, KEY.model_id),
            settings=settings,
        )
        return rank_matches(index.match_chain(KEY, chain, counts, NOW_NS), inputs)

    return Row(
        what=f"{blocks} blocks, {holders} holders, matched, scored and sorted",
        unit="us",
        value=median_us(lookup, options.budget_s),
        bound=Bound.AT_MOST,
        target=250,
        naive=median_us(_naive_match(naive, chain, counts), options.budget_s),
        note="naive: the match alone",
    )


def _fragmented(options: Options, *, blocks: int, holders: int) -> Row:
    (chain,) = chains(1, blocks)
    index, naive = new_index(), NaiveIndex()
    times = [START_NS + number * NS_PER_S // 1_000 for number in range(blocks * holders)]
    random.Random(SEED).shuffle(times)
    counts = counts_of(chain)
    for number in range(holders):
        replica_id = f"replica-{number}"
        for position, block_hash in enumerate(chain):
            seen_ns = times[number * blocks + position]
            index.report(chain_update(replica_id, [block_hash]), seen_ns)
            naive.report(replica_id, [block_hash], counts[:1], seen_ns)
    ours = {c[0]: c[1:4] for c in index.match_chain(KEY, chain, counts, NOW_NS)}
    theirs = {m[0]: m[1:] for m in naive.match_chain(chain, counts, NOW_NS - TTL_NS)}
    require(ours == theirs, "both models answer alike")
    peer_us, note = _peer_us(options, chain, holders)
    return Row(
        what=f"fragmented: {blocks} blocks, a run each, {holders} holders of own ages",
        unit="us",
        value=median_us(_match(index, chain, counts), options.budget_s),
        naive=median_us(_naive_match(naive, chain, counts), options.budget_s),
        naive_ratio_max=1,
        peer=peer_us,
        note=note or "the peer keeps no ages, so nothing is fragmented for it",
    )
