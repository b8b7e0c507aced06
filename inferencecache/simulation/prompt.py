"""A trace request as engines and gateways see it: the chain keys of its full blocks."""

from dataclasses import dataclass

from inferencecache.fingerprint import chain
from inferencecache.simulation.trace import TRACE_BLOCK_TOKENS, TraceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt, ready to be looked up and served.

    Attributes:
        arrival_ms: Arrival, milliseconds from the start of the trace.
        prompt_tokens: All tokens of the prompt, the partial last block included.
        block_hashes: 8-byte key per full block; a key names the whole prefix up to its block.
    """

    arrival_ms: int
    prompt_tokens: int
    block_hashes: list[bytes]

    @property
    def block_token_counts(self) -> list[int]:
        """Tokens of each full block."""
        return [TRACE_BLOCK_TOKENS] * len(self.block_hashes)


def prompt_of(request: TraceRequest) -> Prompt:
    """Return the prompt of *request*.

    A trace id stands for the content of one block, so it takes the place of the block's token ids
    in the chain: the same id behind another prefix gives another key. A partial last block has no
    key, because an engine caches full blocks only.

    Args:
        request: A checked trace request.
    """
    full_blocks = request.input_length // TRACE_BLOCK_TOKENS
    return Prompt(
        arrival_ms=request.timestamp_ms,
        prompt_tokens=request.input_length,
        block_hashes=chain(request.hash_ids[:full_blocks], 1),
    )
