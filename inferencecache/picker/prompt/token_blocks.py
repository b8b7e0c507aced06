"""From token ids to the blocks that the index knows."""

from dataclasses import dataclass

from inferencecache.fingerprint import prefix_hashes, wire_bytes
from inferencecache.picker.prompt.blocks import PromptBlocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The tokens of a prompt.

    Attributes:
        token_ids: All of them, or those before the first picture.
        further: How many the text behind that has; None if there is none.
    """

    token_ids: list[int]
    further: int | None = None


def token_blocks(tokens: Tokens, block_tokens: int) -> PromptBlocks:
    """Return the blocks of a prompt.

    Args:
        tokens: Of the prompt.
        block_tokens: Tokens per block, >= 1.

    Raises:
        InvalidRequestError: A token id is none.

    Complexity: O(n) in tokens.
    """
    return PromptBlocks(
        hashes=wire_bytes(prefix_hashes(tokens.token_ids, block_tokens)),
        block_tokens=block_tokens,
        prompt_tokens=len(tokens.token_ids) + (tokens.further or 0),
        is_exact=True,
        cut="" if tokens.further is None else "mm",
    )
