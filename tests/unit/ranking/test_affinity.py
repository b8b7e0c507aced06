"""The pinned replica of an unknown prompt."""

import random
from collections import Counter

import pytest

from inferencecache.ranking import PromptDraw, affinity_seed

THREE = ["r-1", "r-2", "r-3"]
FIVE = [*THREE, "r-4", "r-5"]


def picked(replicas: list[str], *seeds: bytes) -> str:
    """Return the replica that a seed in so many parts falls on."""
    draw = PromptDraw()
    for seed in seeds:
        draw.add(seed)
    return draw.pick(replicas)


@pytest.mark.parametrize(
    ("chain", "of_three", "of_five"),
    [
        ([b"prompt-block-1", b"prompt-block-2"], "r-1", "r-1"),
        ([b"ab", b"cd"], "r-3", "r-5"),
        ([b"abcd"], "r-2", "r-4"),
        ([b"identical-prompt-block"], "r-3", "r-2"),
    ],
)
def test_published_picks_of_chains(chain: list[bytes], of_three: str, of_five: str) -> None:
    """Chains fall on the published replicas; the split into blocks matters."""
    seed = affinity_seed(chain, b"ignored")

    assert (picked(THREE, seed), picked(FIVE, seed)) == (of_three, of_five)


@pytest.mark.parametrize(
    ("prefix_hash", "of_three", "of_five"),
    [(b"legacy-exact", "r-1", "r-3"), (b"seed", "r-1", "r-3"), (b"any-fingerprint", "r-3", "r-5")],
)
def test_published_picks_of_exact_hashes(prefix_hash: bytes, of_three: str, of_five: str) -> None:
    """Exact hashes are the seed as they are and fall on the published replicas."""
    seed = affinity_seed([], prefix_hash)

    assert (picked(THREE, seed), picked(FIVE, seed)) == (of_three, of_five)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pieces_of_a_chain_fall_where_the_chain_does(size: int) -> None:
    """However long they are, and whatever lengths their hashes have."""
    chain = [b"a" * length for length in (3, 3, 3, 1, 0, 8, 8)]
    pieces = [chain[at : at + size] for at in range(0, len(chain), size)]

    whole = picked(FIVE, affinity_seed(chain, b""))

    assert picked(FIVE, *(affinity_seed(piece, b"") for piece in pieces)) == whole


def test_mixed_lengths_are_written_before_each_hash() -> None:
    """Each hash follows its four-byte length, also where the lengths differ."""
    assert affinity_seed([b"ab", b"c", b""], b"") == (
        b"\x00\x00\x00\x02ab\x00\x00\x00\x01c\x00\x00\x00\x00"
    )
    assert affinity_seed([b"ab", b"cd"], b"") == b"\x00\x00\x00\x02ab\x00\x00\x00\x02cd"


def test_nothing_to_go_by_gives_no_seed() -> None:
    """Without a chain and a hash the seed is empty."""
    assert affinity_seed([], b"") == b""


def test_a_lone_replica_gets_everything() -> None:
    """Ten seeds all fall on the only replica."""
    assert {picked(["r-1"], f"seed-{n}".encode()) for n in range(10)} == {"r-1"}


def test_picks_are_balanced() -> None:
    """Of 1,000 random seeds each of eight replicas gets between 80 and 220."""
    rng = random.Random(7)
    replicas = [f"r-{n}" for n in range(8)]

    picks = Counter(picked(replicas, rng.randbytes(32)) for _ in range(1_000))

    assert len(picks) == 8
    assert all(80 <= count <= 220 for count in picks.values())
