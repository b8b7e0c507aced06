"""Blocks of a prompt as the picker remembers them: keys, one for each stretch of it.

A block's hash stands for everything before it, so the hash of every fourth block of 16 tokens says
as much as all of them, at a quarter of the memory. Hashes are the same for every model and tenant;
the keys are not, so that blocks of different caches are never taken for one another.

Of a long prompt the first 1,024 stretches are kept as they are, and then one in 8: where such a
prompt ends is worth less than what it would cost. With 64 tokens per stretch, a prompt of a million
tokens is 1,024 + 14,601 // 8 = 2,849 keys.
"""

from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

CHARACTER_SCHEME: Final = "chars-v1"
"""The scheme of blocks of characters, under which no engine knows anything."""

KEY_BYTES: Final = 8
"""Of a key."""

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
        keys: Of each that is kept 8 bytes, in order; each stands for all before it, too.
        tokens: Tokens per stretch.
    """

    keys: bytes
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

    Complexity: O(stretches), at the speed of memory.
    """
    blocks = -(-stretch_tokens_min // block_tokens)
    whole = len(hashes) // KEY_BYTES * KEY_BYTES
    kept = memoryview(hashes)[:whole].cast("Q")[blocks - 1 :: blocks]
    coarse = kept[FINE_STRETCHES + COARSE - 1 :: COARSE]
    keys = kept[:FINE_STRETCHES].tobytes() + coarse.tobytes()
    return BlockKeys(_set_apart(keys, _seed(domain)), blocks * block_tokens)


def _set_apart(keys: bytes, seed: bytes) -> bytes:
    """Return *keys*, each with the same bits turned over."""
    size = len(keys)
    turned = int.from_bytes(keys) ^ int.from_bytes(seed * (size // KEY_BYTES))
    return turned.to_bytes(size)


@lru_cache(maxsize=_SEEDS_MAX)
def _seed(domain: CacheDomain) -> bytes:
    """Return the bits that set the blocks of *domain* apart."""
    digest = blake2b(digest_size=KEY_BYTES)
    for part in domain:
        text = part.encode(errors="surrogatepass")
        digest.update(len(text).to_bytes(KEY_BYTES) + text)
    return digest.digest()
