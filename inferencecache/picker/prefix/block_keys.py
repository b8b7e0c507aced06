"""Blocks of a prompt as the picker remembers them: numbers, one for each stretch of it.

A block's hash stands for everything before it, so the hash of every fourth block of 16 tokens says
as much as all of them, at a quarter of the memory. Hashes are the same for every model and tenant;
the numbers are not, so that blocks of different caches are never taken for one another.

Of a long prompt the first 1,024 stretches are kept as they are, and then one in 8: where such a
prompt ends is worth less than what it would cost. With 64 tokens per stretch, a prompt of a million
tokens is 1,024 + 14,601 // 8 = 2,849 numbers.
"""

from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

CHARACTER_SCHEME: Final = "chars-v1"
"""The scheme of blocks of characters, under which no engine knows anything."""

_HASH_BYTES: Final = 8
_SEEDS_MAX: Final = 1_024

FINE_STRETCHES: Final = 1_024
"""Leading stretches of which each is kept."""

COARSE: Final = 8
"""Of the others, one in so many."""


class CacheDomain(NamedTuple):
    """Where blocks are comparable: one cache, as far as requests share it.

    Attributes:
        tenant_id: The tenant of the index, or the caller's.
        model_id: The base model.
        hash_scheme: How blocks are hashed.
        adapter_id: The LoRA adapter; empty for the base model.
    """

    tenant_id: str
    model_id: str
    hash_scheme: str
    adapter_id: str


class BlockKeys(NamedTuple):
    """A prompt's stretches.

    Attributes:
        keys: One number for each that is kept, in order; each stands for all before it, too.
        tokens: Tokens per stretch.
    """

    keys: list[int]
    tokens: int

    def tokens_of(self, count: int) -> int:
        """Return how many tokens the first *count* of the keys stand for."""
        if count > FINE_STRETCHES:
            count = FINE_STRETCHES + (count - FINE_STRETCHES) * COARSE
        return count * self.tokens


def block_keys(
    hashes: bytes, block_tokens: int, stretch_tokens_min: int, domain: CacheDomain
) -> BlockKeys:
    """Return the stretches of a prompt.

    Args:
        hashes: Of its blocks in order, 8 bytes each.
        block_tokens: Tokens per block, > 0.
        stretch_tokens_min: Fewest tokens per stretch; what is left at the end is ignored.
        domain: Where they are comparable.

    Complexity: O(stretches).
    """
    blocks = -(-stretch_tokens_min // block_tokens)
    whole = len(hashes) // _HASH_BYTES * _HASH_BYTES
    numbers = memoryview(hashes)[:whole].cast("Q")[blocks - 1 :: blocks].tolist()
    seed = _seed(domain)
    if len(numbers) > FINE_STRETCHES:
        numbers[FINE_STRETCHES:] = numbers[FINE_STRETCHES + COARSE - 1 :: COARSE]
    return BlockKeys([number ^ seed for number in numbers], blocks * block_tokens)


@lru_cache(maxsize=_SEEDS_MAX)
def _seed(domain: CacheDomain) -> int:
    """Return the number that sets the blocks of *domain* apart."""
    digest = blake2b(digest_size=_HASH_BYTES)
    for part in domain:
        text = part.encode(errors="surrogatepass")
        digest.update(len(text).to_bytes(_HASH_BYTES) + text)
    return int.from_bytes(digest.digest())
