"""Whether what an engine stores can be found at the server, asked as a gateway would.

Each prompt is looked up twice: by keys of ``--block-size``, which a subscriber of that size has
reported, and by its tokens, which the server cuts by its own size. What only the keys find is a
server of another block size.
"""

import asyncio
import dataclasses
from collections.abc import Sequence
from typing import Final

from inferencecache.app.doctor_findings import Finding, finding
from inferencecache.client import AsyncCacheClient, ClientSettings, LookupQuery, LookupResult
from inferencecache.errors import MalformedEventError
from inferencecache.events import AllBlocksCleared, BlockRemoved, BlockStored, Event, decode_batch
from inferencecache.events.token_packing import unpack_tokens
from inferencecache.fingerprint import chain
from inferencecache.settings.doctor import DoctorSettings
from inferencecache.settings.producer import DecodeSettings
from inferencecache.transport.unreachable import why_unreachable
from inferencecache.types import ReasonCode

PROMPTS_MAX: Final = 3
"""Prompts looked up, the newest first."""

_PAUSE_S: Final = 0.1
_UNKNOWN: Final = frozenset(
    {ReasonCode.UNKNOWN_TENANT, ReasonCode.UNKNOWN_MODEL, ReasonCode.UNKNOWN_HASH_SCHEME}
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """The answers about one prompt.

    Attributes:
        by_keys: To keys of ``--block-size``.
        by_tokens: To the tokens.
    """

    by_keys: LookupResult
    by_tokens: LookupResult


def held_prompts(
    payloads: Sequence[bytes], decode: DecodeSettings, tokens_min: int
) -> list[list[int]]:
    """Return starts of prompts that the engine should still hold, the newest first.

    Args:
        payloads: Event batches, in order.
        decode: Limits of decoding.
        tokens_min: Shorter ones are left out: they fill no block of the index.
    """
    held: dict[int, list[int]] = {}
    for payload in payloads:
        try:
            events = decode_batch(payload, decode).events
        except MalformedEventError:
            continue
        for event in events:
            _follow(held, event)
    fitting = [tokens for tokens in held.values() if len(tokens) >= tokens_min]
    return fitting[::-1][:PROMPTS_MAX]


async def look_up(prompts: Sequence[list[int]], settings: DoctorSettings) -> Looked:
    """Return the answers about the first prompt that is found, or about the last one tried.

    A subscriber needs a moment, so this goes on until the time is up.

    Args:
        prompts: At least one.
        settings: The server, names and time limit.
    """
    limits = ClientSettings(lookup_deadline_ns=settings.timeout_ns)
    client = AsyncCacheClient(settings.server, settings=limits, on_warning=_ignore)
    try:
        return await _look_up(client, prompts, settings)
    finally:
        await client.close()


async def _look_up(
    client: AsyncCacheClient, prompts: Sequence[list[int]], settings: DoctorSettings
) -> Looked:
    attempts = max(1, int(settings.timeout_ns / (_PAUSE_S * 1e9)))
    looked = await _ask(client, prompts[0], settings)
    for attempt in range(1, attempts * len(prompts)):
        if is_match(looked.by_keys) or is_match(looked.by_tokens) or looked.by_keys.cause:
            break
        if attempt % len(prompts) == 0:
            await asyncio.sleep(_PAUSE_S)
        looked = await _ask(client, prompts[attempt % len(prompts)], settings)
    return looked


async def _ask(client: AsyncCacheClient, tokens: list[int], settings: DoctorSettings) -> Looked:
    size = settings.block_size_tokens
    keys = chain(tokens, size)
    by_tokens = LookupQuery(
        tenant_id=settings.tenant_id,
        model_id=settings.model_id,
        hash_scheme=settings.hash_scheme,
        token_ids=tokens,
    )
    by_keys = dataclasses.replace(
        by_tokens, token_ids=(), block_hashes=keys, block_token_counts=[size] * len(keys)
    )
    return Looked(by_keys=await client.lookup(by_keys), by_tokens=await client.lookup(by_tokens))


def judge_index(looked: Looked | None, settings: DoctorSettings) -> Finding:
    """Return whether the server knows what the engine holds.

    Args:
        looked: The answers; None if there was no prompt to ask about.
        settings: The names used.
    """
    server = settings.server
    if looked is None:
        return finding("EX005", server, "no prompt of the engine was seen, so none was looked up")
    by_keys, by_tokens = looked.by_keys, looked.by_tokens
    if by_keys.cause is not None:
        why = why_unreachable(by_keys.detail)
        return finding("EX004", server, f"the server gives no answer: {why}")
    if is_match(by_tokens):
        matched = by_tokens.hints[0].matched_tokens
        return finding("EX001", server, f"a prompt of the engine is found, {matched} tokens of it")
    if is_match(by_keys):
        return finding(
            "EX002",
            server,
            f"blocks of {settings.block_size_tokens} tokens are found, but not the same tokens as "
            "the server cuts them: its --engine-block-size differs",
        )
    names = f"tenant {settings.tenant_id!r}, model {settings.model_id!r}"
    if by_keys.reason_code in _UNKNOWN:
        return finding(
            "EX003",
            server,
            f"{by_keys.reason_code}: nobody reports under {names}, scheme "
            f"{settings.hash_scheme!r}: the subscriber is missing or uses other names",
        )
    return finding(
        "EX006",
        server,
        f"the server knows {names}, but not what this engine holds: its subscriber is behind or "
        f"has another --block-size than {settings.block_size_tokens}, the blocks have expired, or "
        "the prompt is shorter than --minimum-matched-tokens of the server",
    )


def is_match(result: LookupResult) -> bool:
    """Tell whether *result* is a match of blocks."""
    return result.reason_code is ReasonCode.PREFIX_MATCH


def _follow(held: dict[int, list[int]], event: Event) -> None:
    """Keep the stores that begin a prompt, as long as their first block is held."""
    if isinstance(event, AllBlocksCleared):
        held.clear()
    elif isinstance(event, BlockRemoved):
        for label in event.block_hashes:
            held.pop(label, None)
    elif _is_start(event):
        held.pop(event.block_hashes[0], None)
        held[event.block_hashes[0]] = unpack_tokens(event.packed_tokens)


def _is_start(event: BlockStored) -> bool:
    """Tell whether *event* begins a plain prompt of the base model."""
    return (
        event.parent_block_hash is None
        and bool(event.block_hashes)
        and bool(event.packed_tokens)
        and event.lora_id is None
        and not event.lora_name
        and event.opaque_from == len(event.block_hashes)
        and event.group_idx == 0
    )


def _ignore(_warning: object) -> None:
    """Say nothing: what there is to say becomes a finding."""
