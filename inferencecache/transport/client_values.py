"""What a client sends and gets, free of protobuf; ``inferencecache.client`` exports it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from inferencecache import fingerprint
from inferencecache.errors import InferenceCacheError
from inferencecache.types import CacheTier, StatsReport


class FailOpenCause(StrEnum):
    """Why a lookup ended without a hint for a reason other than the server's honest answer."""

    DEADLINE = "deadline"
    """The deadline passed; the result says TIMEOUT."""
    UNREACHABLE = "unreachable"
    """No connection, or it broke."""
    REFUSED = "refused"
    """The server did not accept the caller's credentials."""
    UNSUPPORTED = "unsupported"
    """The address answers gRPC but does not serve lookups."""
    TOO_LARGE = "too_large"
    """Request or answer exceed a size limit, or the server is out of resources."""
    RPC_ERROR = "rpc_error"
    """Any other gRPC status."""
    CLOSED = "closed"
    """The client was closed before or during the call."""
    INVALID_QUERY = "invalid_query"
    """The query does not fit the wire, for example a negative token id."""
    INVALID_ANSWER = "invalid_answer"
    """The answer does not parse."""
    UNKNOWN_CODE = "unknown_code"
    """The server knows a reason code that this client does not."""
    EMPTY_HINT = "empty_hint"
    """The reason code promises replicas, and none came."""
    ADAPTER_MISMATCH = "adapter_mismatch"
    """The answer speaks of another adapter than the query."""
    NOT_ELIGIBLE = "not_eligible"
    """None of the replicas named is one the caller can use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupQuery:
    """One question: where is this prompt warm?

    One input is used: the chain or *prefix_hash*, else *token_ids*, else *prompt_text*.

    Attributes:
        tenant_id: The tenant; must equal what the producers of the fleet send.
        model_id: The model, as the producers name it.
        hash_scheme: The engine domain, for example ``vllm``; empty gets no hint.
        adapter_id: LoRA adapter; empty is the base model, never a wildcard.
        block_hashes: Chained hashes of the full blocks, first block first.
        block_token_counts: Tokens of each block, parallel to *block_hashes*.
        prefix_hash: One hash for a whole prefix, for callers without blocks.
        prefix_token_count: Tokens that *prefix_hash* stands for.
        token_ids: The prompt's tokens, each 0 to 2^32-1.
        prompt_text: The prompt as one user message, for servers with a tokenizer.
        ttft_ms: Wanted time to the first token in milliseconds; 0 is unset.
        tbt_ms: Wanted time between tokens in milliseconds; 0 is unset.
    """

    tenant_id: str
    model_id: str
    hash_scheme: str
    adapter_id: str = ""
    block_hashes: Sequence[bytes] = ()
    block_token_counts: Sequence[int] = ()
    prefix_hash: bytes = b""
    prefix_token_count: int = 0
    token_ids: Sequence[int] = ()
    prompt_text: str = ""
    ttft_ms: int = 0
    tbt_ms: int = 0

    def fingerprinted(self, block_size_tokens: int) -> "LookupQuery":
        """Return the same query with the chain computed here, so that no token leaves.

        A prompt without one full block has no chain; the query is then returned as it is.

        Args:
            block_size_tokens: KV block size of the engines, in tokens, > 0.

        Raises:
            InvalidRequestError: A token id is outside 0 to 2^32-1.
        """
        hashes = fingerprint.chain(self.token_ids, block_size_tokens)
        if not hashes:
            return self
        counts = [block_size_tokens] * len(hashes)
        return replace(self, token_ids=(), block_hashes=hashes, block_token_counts=counts)


class ReplicaHint(NamedTuple):
    """One replica worth trying.

    Attributes:
        replica_id: The replica, as its producer names it.
        score: Rank of the server, comparable within one answer only.
        matched_tokens: Leading tokens the replica holds; 0 for softer hints.
        estimated_cache_hit_prob: Ratio from 0 to 1.
        tier: Coldest tier the matched run lies in.
    """

    replica_id: str
    score: float = 0.0
    matched_tokens: int = 0
    estimated_cache_hit_prob: float = 0.0
    tier: CacheTier = CacheTier.UNSPECIFIED


class LookupAnswer(NamedTuple):
    """An answer as it came, before anything is made of it.

    Attributes:
        reason_code: The server's word, possibly one this client does not know.
        hints: Replicas, best first.
        adapter_id: The partition consulted; empty when none was.
        token_ids: Tokens of *prompt_text*, when the server made them.
        latency_us: Microseconds the server took.
    """

    reason_code: str
    hints: tuple[ReplicaHint, ...] = ()
    adapter_id: str = ""
    token_ids: tuple[int, ...] = ()
    latency_us: int = 0


class LookupFailure(NamedTuple):
    """Why no answer came.

    Attributes:
        cause: The kind of failure.
        detail: One line for people.
    """

    cause: FailOpenCause
    detail: str


LookupOutcome = LookupAnswer | LookupFailure


class ReplicaRef(NamedTuple):
    """One replica as its producer sees it."""

    tenant_id: str
    model_id: str
    replica_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPrefix:
    """One prefix a replica holds: a chain of blocks, or one hash for all of it.

    Attributes:
        block_hashes: Chained hashes from the first block of the prompt on.
        block_token_counts: Tokens of each block, parallel to *block_hashes*.
        prefix_hash: One hash that names a whole prefix.
        token_count: Tokens that *prefix_hash* stands for, from the prompt's start.
        tier: Where it is held; UNSPECIFIED means T1.
        adapter_id: LoRA adapter; empty means the update's.
    """

    block_hashes: Sequence[bytes] = ()
    block_token_counts: Sequence[int] = ()
    prefix_hash: bytes = b""
    token_count: int = 0
    tier: CacheTier = CacheTier.UNSPECIFIED
    adapter_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheUpdate:
    """What one replica newly holds, or still holds; absence from an update removes nothing.

    Attributes:
        replica: Who reports.
        hash_scheme: The engine domain; empty makes the server drop *prefixes*.
        prefixes: What is held.
        stats: The replica's numbers, or None.
        adapter_id: LoRA adapter of entries that name none.
        timestamp_ns: Unix time in nanoseconds, sent in microseconds; 0 means now.
    """

    replica: ReplicaRef
    hash_scheme: str
    prefixes: Sequence[HeldPrefix] = ()
    stats: StatsReport | None = None
    adapter_id: str = ""
    timestamp_ns: int = 0


class Removal(NamedTuple):
    """A block a replica dropped, or with *prefix_hash* None everything it held.

    Attributes:
        replica: Who dropped it.
        prefix_hash: The hash, or None for all.
        adapter_id: Only this adapter's entry; empty means every adapter's.
        timestamp_ns: Unix time in nanoseconds, sent in microseconds; 0 means now.
    """

    replica: ReplicaRef
    prefix_hash: bytes | None
    adapter_id: str = ""
    timestamp_ns: int = 0


_GONE: Final = frozenset({"UNAVAILABLE", "STREAM_BROKEN", "ENDED_EARLY"})


NO_ACK: Final = "the answer is no Ack"
"""What is wrong where an answer came that does not parse."""


class DeliveryError(InferenceCacheError):
    """Reports may not have reached the server.

    Args:
        target: Address of the server.
        status: gRPC status name, or a word of ours such as ``NOT_ACCEPTED``.
        detail: What the transport said, in one line.
        unconfirmed: Reports sent since the last confirmation.
    """

    def __init__(self, *, target: str, status: str, detail: str, unconfirmed: int) -> None:
        self.target = target
        self.status = status
        self.detail = " ".join(detail.split())
        self.unconfirmed = unconfirmed
        gone = "is gone" if status in _GONE else "did not take the report"
        super().__init__(
            f"cache server at {target} {gone}: {status}: {self.detail} ({unconfirmed} unconfirmed)"
        )
