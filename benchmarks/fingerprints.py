"""The fingerprint of a long prompt.

Workload: 32,768 token ids of a usual vocabulary in blocks of 16; and the longest slice of 1 M ids,
each slice the best of three.
Seed: ``workload.SEED``. Budget: 1 s per timing.
"""

import random
from collections.abc import Iterator
from functools import partial
from time import perf_counter_ns

import xxhash

from benchmarks.measure import NS_PER_MS, median_us, require
from benchmarks.options import Options
from benchmarks.row import Bound, Row
from benchmarks.workload import BLOCK_TOKENS, SEED
from inferencecache.fingerprint import SEED as HASH_SEED
from inferencecache.fingerprint import chain, chain_slices

_VOCABULARY = 151_936
_SLICE_BLOCKS = 2_048


def run(options: Options) -> Iterator[Row]:
    """Yield the rows of the fingerprint."""
    rng = random.Random(SEED)
    tokens = [rng.randrange(_VOCABULARY) for _ in range(32_768)]
    require(chain(tokens, BLOCK_TOKENS) == naive_chain(tokens, BLOCK_TOKENS), "both ways agree")
    yield Row(
        what="fingerprint of 32,768 token ids, block 16",
        unit="ms",
        value=median_us(partial(chain, tokens, BLOCK_TOKENS), options.budget_s) / 1_000,
        bound=Bound.AT_MOST,
        target=1.5,
        naive=median_us(partial(naive_chain, tokens, BLOCK_TOKENS), options.budget_s) / 1_000,
        note="naive: bytes joined token by token",
    )
    many = tokens * 32
    times = [min(tries) for tries in zip(*(_slices_ms(many) for _ in range(3)), strict=True)]
    yield Row(
        what=f"longest slice of {len(many):,} token ids, 2,048 blocks a slice",
        unit="ms",
        value=max(times),
        bound=Bound.AT_MOST,
        target=5,
        note=f"{len(times)} slices, {sum(times):.3g} ms together",
    )


def _slices_ms(tokens: list[int]) -> list[float]:
    """Return the time of each slice."""
    times, started = [], perf_counter_ns()
    for _ in chain_slices(tokens, BLOCK_TOKENS, _SLICE_BLOCKS):
        times.append((perf_counter_ns() - started) / NS_PER_MS)
        started = perf_counter_ns()
    return times


def naive_chain(tokens: list[int], size: int) -> list[bytes]:
    """Return what ``chain`` does, written as the definition reads."""
    keys: list[bytes] = []
    for start in range(0, len(tokens) - size + 1, size):
        data = b"".join(token.to_bytes(4, "little") for token in tokens[start : start + size])
        content = xxhash.xxh3_64_digest(data, seed=HASH_SEED)
        link = keys[-1][::-1] + content[::-1] if keys else b""
        keys.append(xxhash.xxh3_64_digest(link, seed=HASH_SEED) if keys else content)
    return keys
