"""Blocks of 61 tokens and more take the long path of the hash; their keys must match too.

Implementations of XXH3 that drop the seed there agree on every shorter block.
"""

import pytest
from field_rig import FieldRig

from inferencecache.errors import InvalidRequestError
from inferencecache.fingerprint import chain

FIRST_KEY_OF_64 = 9_432_103_757_513_249_133


def test_lookup_by_token_ids_uses_the_seeded_long_path() -> None:
    """An engine's key for a 64-token block is found by the same tokens."""
    rig = FieldRig(engine_block_size=64)
    rig.report("A", [FIRST_KEY_OF_64.to_bytes(8, "big")])
    token_ids = [(position * 2_654_435_761) % 151_936 for position in range(64)]

    answer = rig.ask(token_ids=token_ids)

    assert answer.reason_code == "PREFIX_MATCH"
    assert [(s.replica_id, s.matched_tokens) for s in answer.replica_scores] == [("A", 64)]


def test_smallest_and_largest_token_ids_are_accepted() -> None:
    """0 and 2**32 - 1 are token ids."""
    assert len(chain([0, 2**32 - 1] * 8, 16)) == 1


@pytest.mark.parametrize("token_id", [-1, 2**32])
def test_token_ids_outside_32_bits_are_refused(token_id: int) -> None:
    """They would alias others if they were cut down."""
    with pytest.raises(InvalidRequestError):
        chain([token_id] * 16, 16)
