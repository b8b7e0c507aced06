"""The seam between the prefix signal and an index, in this process or in another one."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

import msgspec

from inferencecache.picker.prefix.block_keys import CacheDomain


class IndexFlaw(StrEnum):
    """Why an index cannot say where a prompt is warm; tokens for the reason of a Pick."""

    COLD = "index_cold"
    """It has never heard of anybody who could hold it."""
    TIMEOUT = "index_timeout"
    UNREACHABLE = "index_unreachable"
    REFUSED = "index_refused"
    """It does not let the picker ask."""
    FAILED = "index_failed"
    """It answers something else."""
    UNKNOWN_TENANT = "unknown_tenant"
    UNKNOWN_MODEL = "unknown_model"
    UNKNOWN_HASH_SCHEME = "unknown_hash_scheme"
    POLICY_REQUIRES_CHAIN = "policy_requires_chain"


class IndexMatch(NamedTuple):
    """What an index says of one replica.

    Attributes:
        tokens: Leading tokens of the prompt that it holds.
        tier: Number of the coldest tier that they lie in; 0 is unknown.
        tiers: How many blocks of them lie in which tier, coldest last; empty where they all lie in
            one, or nobody says.
    """

    tokens: int
    tier: int
    tiers: tuple[tuple[int, int], ...] = ()


NO_INDEX_MATCHES: Final[Mapping[str, IndexMatch]] = MappingProxyType({})


class IndexQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What an index is asked.

    Attributes:
        domain: The part of the index.
        hashes: Of the prompt's blocks in order, 8 bytes each; at least one.
        block_tokens: Tokens per block.
        deadline_ns: Monotonic time from which on no answer is wanted.
    """

    domain: CacheDomain
    hashes: bytes
    block_tokens: int
    deadline_ns: int


class IndexFound(msgspec.Struct, frozen=True, kw_only=True):
    """What it says.

    Attributes:
        matches: By replica; whoever is not in it holds nothing.
        flaw: Why it cannot say; None if it can.
    """

    matches: Mapping[str, IndexMatch] = NO_INDEX_MATCHES
    flaw: IndexFlaw | None = None


NOTHING_HELD: Final = IndexFound()
COLD: Final = IndexFound(flaw=IndexFlaw.COLD)


class IndexSource(Protocol):
    """An index."""

    @property
    def hears_replicas(self) -> bool:
        """Whether it is told of every report; if not, silence of a replica means nothing."""
        ...

    async def match(self, question: IndexQuestion) -> IndexFound:
        """Return who holds how much of a prompt.

        Never raises for what the index does, returns by the deadline, and does not wait where the
        index is at hand.
        """
        ...
