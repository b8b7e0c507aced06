"""Chain keys of trace requests."""

from inferencecache.simulation import TraceRequest, prompt_of


def request(input_length: int, *hash_ids: int) -> TraceRequest:
    """Return a request at time 0."""
    return TraceRequest(
        timestamp_ms=0, input_length=input_length, output_length=1, hash_ids=hash_ids
    )


def test_partial_last_block_has_no_key() -> None:
    """1,100 tokens are two full blocks and a tail that counts as prompt but is never cached."""
    prompt = prompt_of(request(1_100, 5, 6, 7))

    assert len(prompt.block_hashes) == 2
    assert prompt.block_token_counts == [512, 512]
    assert prompt.prompt_tokens == 1_100


def test_exact_multiple_keeps_its_last_block() -> None:
    """A last block that is full is a block like the others."""
    assert len(prompt_of(request(1_024, 5, 6)).block_hashes) == 2


def test_short_prompt_has_no_block() -> None:
    """Below one block there is nothing to look up."""
    assert prompt_of(request(511, 5)).block_hashes == []


def test_keys_are_positional() -> None:
    """Equal ids behind equal prefixes have equal keys; behind others they do not."""
    first = prompt_of(request(1_536, 1, 2, 3)).block_hashes
    second = prompt_of(request(1_536, 1, 2, 4)).block_hashes
    third = prompt_of(request(1_536, 9, 2, 3)).block_hashes

    assert first[:2] == second[:2]
    assert len({*first, *second, *third}) == 7
    assert all(len(key) == 8 for key in first)
