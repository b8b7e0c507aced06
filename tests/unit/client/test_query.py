"""Queries that compute their own chain."""

import pytest

from inferencecache import fingerprint
from inferencecache.client import LookupQuery
from inferencecache.errors import InvalidRequestError


def query(token_ids: list[int]) -> LookupQuery:
    """Return a query with tokens."""
    return LookupQuery(
        tenant_id="t",
        model_id="m",
        hash_scheme="vllm",
        adapter_id="sql",
        token_ids=token_ids,
        ttft_ms=5,
    )


def test_fingerprint_replaces_tokens_by_the_chain() -> None:
    """The chain is the fingerprint of the full blocks; no token is left, all else is."""
    chained = query(list(range(37))).fingerprinted(16)

    assert chained.token_ids == ()
    assert chained.block_hashes == fingerprint.chain(range(37), 16)
    assert chained.block_token_counts == [16, 16]
    assert (chained.adapter_id, chained.ttft_ms) == ("sql", 5)


@pytest.mark.parametrize("token_ids", [[], [1] * 15])
def test_prompt_shorter_than_a_block_stays_as_it_is(token_ids: list[int]) -> None:
    """Without a full block there is no chain to send."""
    short = query(token_ids)

    assert short.fingerprinted(16) is short


def test_token_outside_its_range_is_refused() -> None:
    """A token id that no engine can have is the caller's error."""
    with pytest.raises(InvalidRequestError):
        query([-1] * 16).fingerprinted(16)
