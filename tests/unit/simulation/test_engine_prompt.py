"""Trace requests as tokens."""

from inferencecache.fingerprint import chain
from inferencecache.simulation import TraceRequest, prompt_of, tokenize_trace, trace_tokens


def request(input_length: int, *hash_ids: int) -> TraceRequest:
    """Return a request at time 0."""
    return TraceRequest(
        timestamp_ms=0, input_length=input_length, output_length=1, hash_ids=hash_ids
    )


def test_every_token_of_a_block_is_its_id() -> None:
    """A partial block has as many tokens as the prompt has left."""
    assert trace_tokens([7, 9], 514) == [7] * 512 + [9, 9]


def test_keys_are_made_of_tokens() -> None:
    """Full blocks have keys, and each knows its content and the block before."""
    trace = tokenize_trace([request(1_100, 1, 2, 3), request(600, 1, 4)])
    first, second = chain([1] * 512 + [2] * 512, 512)

    assert [prompt.block_hashes for prompt in trace.prompts] == [[first, second], [first]]
    assert trace.blocks == {first: (1, None), second: (2, first)}


def test_prompts_share_what_they_share_by_id() -> None:
    """Keys are others than those made of ids, and equal in the same places."""
    requests = [request(1_536, 1, 2, 3), request(1_536, 1, 2, 4), request(1_536, 2, 2, 3)]
    by_tokens = [prompt.block_hashes for prompt in tokenize_trace(requests).prompts]
    by_ids = [prompt_of(one).block_hashes for one in requests]

    def pattern(chains: list[list[bytes]]) -> list[list[int]]:
        seen: dict[bytes, int] = {}
        return [[seen.setdefault(key, len(seen)) for key in keys] for keys in chains]

    assert pattern(by_tokens) == pattern(by_ids)
    assert by_tokens != by_ids
