"""How simulated engines describe what they stored."""

from inferencecache.app.replay_plane import stored_suffix
from inferencecache.simulation import CacheOutcome


def test_whole_chain_counts_its_blocks() -> None:
    """A chain stored from the first block on carries plain block sizes."""
    outcome = CacheOutcome(hit_blocks=0, stored=[b"a", b"b"], evicted=[])

    assert list(stored_suffix(outcome).block_token_counts) == [512, 512]


def test_suffix_starts_at_the_depth_of_its_parent() -> None:
    """Behind 3 cached blocks the first new block ends at token 2,048."""
    outcome = CacheOutcome(hit_blocks=3, stored=[b"d", b"e"], evicted=[])
    entry = stored_suffix(outcome)

    assert list(entry.block_token_counts) == [2_048, 512]
    assert list(entry.block_hashes) == [b"d", b"e"]
    assert entry.prefix_hash == b""
