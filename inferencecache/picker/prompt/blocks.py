"""The seam between the prefix signal and whoever turns prompts into blocks.

The prefix signal compares blocks; where they come from, token ids in the body, a tokenizer here,
the engine's own or plain characters, is the reader's business. Nothing of a prompt leaves the
reader but hashes and lengths.
"""

from dataclasses import dataclass
from typing import Protocol

from inferencecache.picker.choice import Question
from inferencecache.picker.fleet import ModelRow, WorkerSet


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBlocks:
    """A prompt as blocks.

    Attributes:
        hashes: Of its whole blocks in order, 8 bytes each, as they go over the wire.
        block_tokens: Tokens per block; for characters what a block is believed to hold.
        prompt_tokens: Tokens of the whole prompt, its last part block included.
        is_exact: Whether the tokens are those that the engine computes, not a guess.
        cut: Why the blocks end before the prompt does, as a token for the reason, ``mm``; empty if
            they do not.
    """

    hashes: bytes
    block_tokens: int
    prompt_tokens: int
    is_exact: bool
    cut: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoBlocks:
    """A prompt without blocks.

    Attributes:
        why: As a token for the reason: ``tokenizer_missing``, ``tokenizer_timeout``.
        is_by_design: Whether nothing is missing: the request has no prompt, or its engine does not
            look at its cache for it.
    """

    why: str
    is_by_design: bool = False


class PromptReader(Protocol):
    """Turns prompts into blocks."""

    async def blocks(
        self, question: Question, worker_set: WorkerSet, row: ModelRow
    ) -> PromptBlocks | NoBlocks:
        """Return the blocks as the engines of *worker_set* would name them for model *row*.

        Does not wait where it need not: for token ids in the body, and for prompts it has seen.
        """
        ...

    async def characters(self, question: Question, row: ModelRow) -> PromptBlocks | NoBlocks:
        """Return blocks of characters, to be compared with nothing but their like.

        Requests with another salt, or for another adapter or model, share none.
        """
        ...
