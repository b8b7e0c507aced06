"""What a gateway asks of LookupRoute."""

from collections.abc import Sequence
from typing import NamedTuple


class RouteRequest(NamedTuple):
    """One question: which replica is warm for this prompt?

    The wire has no presence bits, so an empty value means "not given" everywhere. Token counts are
    signed because the wire's are. The first four fields name a partition, in the order of
    :class:`~inferencecache.types.PartitionKey`; the chain comes last, because everything before it
    is the same for many requests.

    Attributes:
        tenant_id: The tenant.
        model_id: The model.
        hash_scheme: The engine domain the hashes belong to.
        adapter_id: The LoRA adapter, empty for the base model.
        prefix_hash: Hash that names the whole prefix, for an exact match.
        prefix_token_count: Tokens of that prefix, as claimed.
        token_ids: The prompt as token ids, 0 to 2**32 - 1; only sliced, never walked whole.
        prompt_text: The prompt as text.
        ttft_ms: Time to first token the caller wants, 0 for no wish.
        block_hashes: Chain of block hashes from the first block on.
        block_token_counts: Tokens of each block of the chain, not cumulative.
    """

    tenant_id: str = ""
    model_id: str = ""
    hash_scheme: str = ""
    adapter_id: str = ""
    prefix_hash: bytes = b""
    prefix_token_count: int = 0
    token_ids: Sequence[int] = ()
    prompt_text: str = ""
    ttft_ms: int = 0
    block_hashes: Sequence[bytes] = ()
    block_token_counts: Sequence[int] = ()

    def has_chain_arrays(self) -> bool:
        """Return whether either array of a chain was sent, well-formed or not."""
        return bool(self.block_hashes or self.block_token_counts)
