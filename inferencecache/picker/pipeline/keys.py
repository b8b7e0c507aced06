"""Keys of the product's own producers; third parties may consume them, and produce them instead."""

from typing import Final

import msgspec

from inferencecache.picker.pipeline.attributes import AttributeKey


class InflightLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What an endpoint was given by this picker and has not finished.

    Attributes:
        requests: Not ended.
        prompt_tokens: Of those that have not begun to answer, without what is cached.
        output_tokens: Expected of those that have not ended; 0 where nobody estimates it.
    """

    requests: int
    prompt_tokens: int
    output_tokens: int = 0


class PrefixMatch(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a prompt an endpoint has in its cache.

    Attributes:
        matched_blocks: Leading blocks of the prompt that it has.
        total_blocks: Blocks of the prompt.
        block_tokens: Tokens per block.
    """

    matched_blocks: int
    total_blocks: int
    block_tokens: int

    @property
    def matched_tokens(self) -> int:
        """Tokens that need not be computed."""
        return self.matched_blocks * self.block_tokens


class PromptTokens(msgspec.Struct, frozen=True, kw_only=True):
    """How long a prompt is.

    Attributes:
        count: Its tokens.
        is_exact: Whether they were counted, not estimated.
    """

    count: int
    is_exact: bool


INFLIGHT_LOAD: Final = AttributeKey("inflight-load", InflightLoad)
"""About an endpoint: what it has in flight."""

PREFIX_MATCH: Final = AttributeKey("prefix-match", PrefixMatch)
"""About an endpoint: what it has cached of the prompt."""

PROMPT_TOKENS: Final = AttributeKey("prompt-tokens", PromptTokens)
"""About the request: the length of its prompt."""

GIVEN_KEYS: Final = frozenset({PREFIX_MATCH.name, PROMPT_TOKENS.name})
"""Names of those that whoever chooses says itself, unless a plugin produces them."""
