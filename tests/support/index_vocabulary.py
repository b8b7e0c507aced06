"""The small world in which the index is tested against its oracle, as hypothesis strategies."""

from hypothesis import strategies as st
from plain_update import PlainPrefix

from inferencecache.types import INT32_MAX, PROBE_TENANT_ID, EvictionAlgorithm, StatsReport

CHAIN = tuple(bytes((0, 0, 0, 0, 0, 0, 7, n)) for n in range(12))
MIXED = (b"ab", b"cd", b"abc", b"d", b"abcd")
HASHES = (*CHAIN, *MIXED, b"")
"""Every hash a test ever uses; the mixed lengths join to equal bytes in different ways."""

FRESH = tuple(bytes((0, 0, 0, 0, 0, 0, 8, n)) for n in range(20))
"""Hashes kept back for the end of a test."""

TTLS_NS = (1_000, 60_000)
FAR_PAST_NS = -(2**70)
"""Asked at this time, every entry counts as fresh."""

tenants = st.sampled_from(["t1"] * 8 + ["t2", "t2", PROBE_TENANT_ID, ""])
models = st.sampled_from(["m1"] * 5 + ["m2"])
schemes = st.sampled_from(["vllm"] * 6 + ["sglang", ""])
lookup_schemes = st.sampled_from(["vllm"] * 5 + ["sglang"])
adapters = st.sampled_from([""] * 6 + ["lora"])
replicas = st.sampled_from(["r1", "r2", "r3"])
hashes = st.sampled_from(HASHES)
tiers = st.sampled_from([0, 0, 0, 1, 2, 3, 77, -3])
good_counts = st.sampled_from([16, 16, 16, 1, 0, INT32_MAX])
any_counts = st.sampled_from([16] * 12 + [1, 0, -5, INT32_MAX])
age_offsets_ns = st.sampled_from([None] * 8 + [0, -1, -500, -1_000, -70_000, 1, 10**12, -(10**20)])
"""Where a report's stamp lies relative to now; None leaves the stamp out."""

time_jumps_ns = st.sampled_from([1, 1, 10, 499, 500, 999, 1_000, 60_000, 130_000, -300])
algorithms = st.sampled_from(list(EvictionAlgorithm))
ttls_ns = st.sampled_from(TTLS_NS)
quotas = st.sampled_from([None, None, 0, 1, 3, 6, 10])


@st.composite
def stretches(draw: st.DrawFn) -> tuple[bytes, ...]:
    """Draw some consecutive blocks of the one long chain."""
    first = draw(st.sampled_from([0, 0, 0, 1, 4, 8]))
    length = draw(st.integers(1, len(CHAIN) - first))
    return CHAIN[first : first + length]


jumbles = st.lists(hashes, min_size=1, max_size=6).map(tuple)
chains = st.one_of(stretches(), stretches(), jumbles)
request_chains = chains


@st.composite
def chain_entries(draw: st.DrawFn) -> PlainPrefix:
    """Draw a chain, mostly well formed, now and then with a hash for the whole prompt."""
    blocks = draw(chains)
    counts = draw(st.lists(any_counts, min_size=len(blocks), max_size=len(blocks)))
    spoiled = draw(st.sampled_from([0] * 12 + [1, 2]))
    whole = draw(st.sampled_from([b""] * 5 + [MIXED[0], CHAIN[3]]))
    return PlainPrefix(
        prefix_hash=whole,
        token_count=draw(any_counts) if whole else 0,
        block_hashes=blocks if spoiled != 1 else (),
        block_token_counts=tuple(counts) if spoiled != 2 else tuple(counts[1:]),
        tier=draw(tiers),
        adapter_id=draw(adapters),
    )


def single(block_hash: bytes, token_count: int, tier: int, adapter_id: str) -> PlainPrefix:
    """Return an entry that names one key."""
    return PlainPrefix(block_hash, token_count, (), (), tier, adapter_id)


single_entries = st.builds(single, hashes, any_counts, tiers, adapters)


@st.composite
def singles_in_a_row(draw: st.DrawFn) -> tuple[PlainPrefix, ...]:
    """Draw the shape real producers send: one entry per block of a chain, in order."""
    blocks = draw(stretches())
    tier = draw(tiers)
    step = draw(st.sampled_from([16, 16, 32]))
    return tuple(single(block, (n + 1) * step, tier, "") for n, block in enumerate(blocks))


one_entry = single_entries.map(lambda entry: (entry,))
prefix_lists = st.one_of(
    chain_entries().map(lambda entry: (entry,)),
    singles_in_a_row(),
    st.lists(st.one_of(chain_entries(), single_entries), max_size=4).map(tuple),
)

ratios = st.sampled_from([0.0, 0.5, 1.0, -3.0, float("nan"), float("inf"), float("-inf")])
stats_reports = st.builds(
    StatsReport,
    cache_memory_bytes=st.sampled_from([0, 4096, -1]),
    hit_rate=ratios,
    pressure=ratios,
    client_version=st.sampled_from(["", "1.2.3"]),
    t2_hit_tokens=st.sampled_from([0, 600]),
)
maybe_stats = st.one_of(st.none(), st.none(), st.none(), stats_reports)
