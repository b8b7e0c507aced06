"""Which of a lookup's inputs counts, and what it is as hashes.

Rules of this file:

1. One input wins: an explicit chain or prefix hash, then token ids, then the prompt text.
2. What is malformed or too large fails open. It is never repaired, and nothing less exact is
   looked up in its place.
3. Work that grows with the prompt is done in slices, with a ``yield`` in between.
"""

from collections.abc import Generator, Sequence
from enum import StrEnum
from itertools import repeat
from typing import NamedTuple

from inferencecache.clock import Clock
from inferencecache.fingerprint import chain_slices
from inferencecache.service.match_slices import piece_of
from inferencecache.service.route_request import RouteRequest
from inferencecache.service.tokenizer import Tokenization, TokenizationSlots, Tokenizer, Wait
from inferencecache.settings.lookup import LookupSettings
from inferencecache.types import INT32_MAX


class FailOpen(StrEnum):
    """Why an input could not be used; each is counted and answered with NO_HINT."""

    CHAIN_LENGTHS_DIFFER = "chain_lengths_differ"
    CHAIN_COUNT_NEGATIVE = "chain_count_negative"
    CHAIN_DISABLED = "chain_disabled"
    TOO_MANY_TOKENS = "too_many_tokens"
    SHORTER_THAN_BLOCK = "shorter_than_block"
    PROMPT_TOO_LONG = "prompt_too_long"
    PROMPT_NOT_UNICODE = "prompt_not_unicode"
    TOKENIZER_ABSENT = "tokenizer_absent"
    TOKENIZER_BUSY = "tokenizer_busy"
    TOKENIZER_FAILED = "tokenizer_failed"
    TOO_MANY_WAITING = "too_many_waiting"


class ResolvedInput(NamedTuple):
    """The one input that counts.

    Attributes:
        block_hashes: The chain to match; empty for an exact match.
        block_token_counts: Tokens of each of its blocks.
        prefix_hash: The hash of an exact match.
        prefix_token_count: Its tokens as claimed.
        token_ids: The tokens to echo; filled where the prompt was tokenized here.
        fail_open: Set where there is nothing to look up.
        timed_out: Set where time ran out first.
        is_cut: Set where the chain is longer than lookups may be, and its end ignored.
    """

    block_hashes: Sequence[bytes]
    block_token_counts: Sequence[int]
    prefix_hash: bytes
    prefix_token_count: int
    token_ids: Sequence[int] = ()
    fail_open: FailOpen | None = None
    timed_out: bool = False
    is_cut: bool = False


Steps = Generator[Wait | None, bool | None, ResolvedInput]
"""Yields None to give the loop back, or what to wait for; sent True, the caller has gone."""


def chain_fault(
    block_hashes: Sequence[bytes], block_token_counts: Sequence[int]
) -> FailOpen | None:
    """Return what is wrong with a chain as sent, or None.

    Counts that come as bytes cannot be negative. Chains of equal blocks, the usual kind, are
    checked by counting the first value.
    """
    if len(block_hashes) != len(block_token_counts):
        return FailOpen.CHAIN_LENGTHS_DIFFER
    if isinstance(block_token_counts, bytes) or not block_token_counts:
        return None
    first = block_token_counts[0]
    if block_token_counts.count(first) != len(block_token_counts):
        first = min(block_token_counts)
    return FailOpen.CHAIN_COUNT_NEGATIVE if first < 0 else None


def _prompt_fault(text: str, bytes_max: int) -> FailOpen | None:
    """Return what is wrong with a prompt, or None; half a surrogate pair has no bytes."""
    if len(text) > bytes_max:
        return FailOpen.PROMPT_TOO_LONG
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return FailOpen.PROMPT_NOT_UNICODE
    return FailOpen.PROMPT_TOO_LONG if size > bytes_max else None


def has_valid_chain(request: RouteRequest) -> bool:
    """Return whether *request* carries a chain that can be matched as sent."""
    if not request.block_hashes:
        return False
    return chain_fault(request.block_hashes, request.block_token_counts) is None


def effective_tokens(resolved: ResolvedInput) -> int:
    """Return how long the prompt claims to be: the chain's tokens, else the exact count."""
    if resolved.block_token_counts:
        return min(sum(resolved.block_token_counts), INT32_MAX)
    return resolved.prefix_token_count


def failed(reason: FailOpen, token_ids: Sequence[int] = ()) -> ResolvedInput:
    """Return an input that cannot be looked up."""
    return ResolvedInput([], [], b"", 0, token_ids, reason)


def will_tokenize(request: RouteRequest, *, chain_enabled: bool) -> bool:
    """Return whether the prompt text is the input that counts."""
    if not request.prompt_text or request.prefix_hash or request.token_ids:
        return False
    return not (chain_enabled and request.has_chain_arrays())


def resolve_sent(
    request: RouteRequest, blocks_max: int, *, chain_enabled: bool
) -> ResolvedInput | None:
    """Return the hashes *request* carries, or None where they must be derived.

    Args:
        request: The lookup.
        blocks_max: Blocks of a chain that count, >= 1.
        chain_enabled: Whether the tenant's policy allows chain matching.
    """
    hashes, counts = request.block_hashes, request.block_token_counts
    has_chain = bool(counts or hashes)
    if has_chain and chain_enabled:
        fault = chain_fault(hashes, counts)
        if fault is not None:
            return failed(fault)
        is_cut = len(counts) > blocks_max
        if is_cut:
            hashes, counts = piece_of(hashes, 0, blocks_max), counts[:blocks_max]
        exact = request.prefix_hash, request.prefix_token_count
        return tuple.__new__(ResolvedInput, (hashes, counts, *exact, (), None, False, is_cut))
    if not request.prefix_hash:
        if request.token_ids or request.prompt_text:
            return None
        if has_chain:
            return failed(FailOpen.CHAIN_DISABLED)
    return ResolvedInput([], [], request.prefix_hash, request.prefix_token_count)


class InputResolver:
    """Derives hashes from token ids and prompt texts.

    Args:
        settings: Block size and limits.
        clock: Measures how long a tokenization may still be waited for.
        tokenizer: Tokenizes prompt texts; without one they fail open.
    """

    __slots__ = ("_clock", "_settings", "_slots", "_tokenizer")

    def __init__(
        self, settings: LookupSettings, clock: Clock, tokenizer: Tokenizer | None = None
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._tokenizer = tokenizer
        self._slots = TokenizationSlots(settings.tokenizations_max)

    def derive_steps(
        self, request: RouteRequest, deadline_ns: int | None, *, chain_enabled: bool
    ) -> Steps:
        """Derive the input from token ids or, without any, from the prompt text.

        Args:
            request: The lookup; it carries no hashes of its own that count.
            deadline_ns: Monotonic time at which to give up, or None.
            chain_enabled: Whether the tenant's policy allows chain matching.
        """
        if request.token_ids:
            if len(request.token_ids) > self._settings.token_ids_max:
                return failed(FailOpen.TOO_MANY_TOKENS)
            return (
                yield from self._hash_steps(
                    request.token_ids, deadline_ns, chain_enabled=chain_enabled
                )
            )
        work = self._start(request)
        if isinstance(work, FailOpen):
            return failed(work)
        if not work.is_done():
            timeout_ns = self._settings.tokenize_timeout_ns
            if deadline_ns is not None:
                timeout_ns = max(deadline_ns - self._clock.monotonic_ns(), 0)
            gone = yield Wait(work, timeout_ns)
            if gone or not work.is_done():
                return TIMED_OUT
        return (yield from self._prompt_steps(work, deadline_ns, chain_enabled=chain_enabled))

    def _prompt_steps(
        self, work: Tokenization, deadline_ns: int | None, *, chain_enabled: bool
    ) -> Steps:
        token_ids = work.token_ids()
        if not token_ids:
            return failed(FailOpen.TOKENIZER_FAILED)
        if len(token_ids) > self._settings.token_ids_max:
            return failed(FailOpen.TOO_MANY_TOKENS)
        resolved = yield from self._hash_steps(token_ids, deadline_ns, chain_enabled=chain_enabled)
        return resolved._replace(token_ids=() if resolved.timed_out else token_ids)

    def _start(self, request: RouteRequest) -> Tokenization | FailOpen:
        text = request.prompt_text
        limit = self._settings.prompt_text_bytes_max
        fault = _prompt_fault(text, limit)
        if fault is not None:
            return fault
        if self._tokenizer is None:
            return FailOpen.TOKENIZER_ABSENT
        if self._slots.is_full():
            return FailOpen.TOKENIZER_BUSY
        work = self._tokenizer.start(request.model_id, text)
        if work is None:
            return FailOpen.TOKENIZER_ABSENT
        self._slots.take(work)
        return work

    def _hash_steps(
        self, token_ids: Sequence[int], deadline_ns: int | None, *, chain_enabled: bool
    ) -> Steps:
        """Fingerprint *token_ids*, giving the loop back between slices."""
        block_size = self._settings.block_size_tokens
        blocks_max = self._settings.chain_blocks_max
        hashes: list[bytes] = []
        for piece in chain_slices(token_ids, block_size, self._settings.slice_blocks):
            if hashes and (
                (yield None)
                or (deadline_ns is not None and self._clock.monotonic_ns() >= deadline_ns)
            ):
                return TIMED_OUT
            hashes += piece
            if chain_enabled and len(hashes) >= blocks_max:
                break
        if not hashes:
            return failed(FailOpen.SHORTER_THAN_BLOCK)
        is_cut = chain_enabled and len(token_ids) // block_size > blocks_max
        if is_cut:
            del hashes[blocks_max:]
        exact = hashes[-1], min(len(hashes) * block_size, INT32_MAX)
        if not chain_enabled:
            return ResolvedInput([], [], *exact)
        counts = list(repeat(block_size, len(hashes)))
        return ResolvedInput(hashes, counts, *exact, is_cut=is_cut)


TIMED_OUT = ResolvedInput([], [], b"", 0, timed_out=True)
