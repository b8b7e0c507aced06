"""A hint for a request that names a block twice counts as a use of every block it matched."""

from index_twin import IndexTwin
from index_vocabulary import CHAIN
from plain_update import PlainPrefix, PlainUpdate

from inferencecache.settings.index import IndexSettings
from inferencecache.types import EvictionAlgorithm, PartitionKey


def test_every_block_of_a_repeating_request_counts_as_used() -> None:
    """Of h0 h1 h2 h1 all three blocks are used, so a newcomer at the cap is its own victim."""
    twin = IndexTwin(IndexSettings(entries_max=3))
    twin.rules.algorithms["t"] = EvictionAlgorithm.LFU
    place = {"tenant_id": "t", "model_id": "m", "hash_scheme": "vllm", "replica_id": "r"}
    chain = PlainPrefix(block_hashes=CHAIN[:3], block_token_counts=(16,) * 3)
    twin.report(PlainUpdate(prefixes=(chain,), **place))
    key = PartitionKey("t", "m", "vllm", "")
    twin.credit(key, [*CHAIN[:3], CHAIN[1]], {"r": 4})
    twin.now_ns += 1
    twin.report(PlainUpdate(prefixes=(PlainPrefix(CHAIN[5], 16),), **place))

    twin.check()
