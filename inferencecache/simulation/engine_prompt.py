"""Trace requests as token ids, for engines whose events carry tokens."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from inferencecache.fingerprint import chain
from inferencecache.simulation.prompt import Prompt
from inferencecache.simulation.trace import TRACE_BLOCK_TOKENS, TraceRequest


class TraceBlock(NamedTuple):
    """What stands behind the key of a full block.

    Attributes:
        content: The trace's id of its content.
        parent: Key of the block before it; None at a prompt's start.
    """

    content: int
    parent: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizedTrace:
    """The prompts of a trace, keyed by their tokens.

    Attributes:
        prompts: The prompts, in order of arrival.
        blocks: Every full block, by key.
    """

    prompts: Sequence[Prompt]
    blocks: Mapping[bytes, TraceBlock]


def trace_tokens(hash_ids: Sequence[int], token_count: int) -> list[int]:
    """Return tokens in place of the content that *hash_ids* stand for.

    Every token of a block is the block's id, so equal ids give equal tokens and no two ids do.

    Args:
        hash_ids: One id per started block.
        token_count: Tokens of the prompt; the last block may be partial.
    """
    tokens = [hash_id for hash_id in hash_ids for _ in range(TRACE_BLOCK_TOKENS)]
    return tokens[:token_count]


def tokenize_trace(requests: Iterable[TraceRequest]) -> TokenizedTrace:
    """Return the prompts of *requests* with the keys that their tokens have."""
    blocks: dict[bytes, TraceBlock] = {}
    prompts: list[Prompt] = []
    for request in requests:
        full_blocks = request.input_length // TRACE_BLOCK_TOKENS
        ids = request.hash_ids[:full_blocks]
        keys = chain(trace_tokens(ids, full_blocks * TRACE_BLOCK_TOKENS), TRACE_BLOCK_TOKENS)
        blocks |= dict(zip(keys, map(TraceBlock, ids, [None, *keys]), strict=True))
        prompts.append(
            Prompt(
                arrival_ms=request.timestamp_ms,
                prompt_tokens=request.input_length,
                block_hashes=keys,
            )
        )
    return TokenizedTrace(prompts=prompts, blocks=blocks)
