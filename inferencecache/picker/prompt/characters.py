"""Blocks of characters, scheme ``chars-v1``: for engines whose tokens nobody here can compute.

The prompt is written as one text, tools first, then turn after turn, each as its role and content;
blocks of it that are believed to hold 64 tokens, 256 bytes where a token is believed to have 4, are
chained as token blocks are, but from a start of their own: it depends on this process, the model,
the adapter and the salt. So they can be compared with nothing but their like.

A prompt of token ids is its own text, 4 bytes a token.
"""

import struct
from array import array
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from xxhash import xxh3_64_intdigest, xxh3_128_digest

from inferencecache.fingerprint import TOKEN_ID_MAX
from inferencecache.picker.fleet import ModelRow
from inferencecache.picker.prompt.blocks import PromptBlocks
from inferencecache.picker.prompt.conversation import Conversation, Message, Prompt, TextPrompt

BLOCK_TOKENS: Final = 64

TOKEN_ID_BYTES: Final = 4
"""Of a token in a prompt of token ids."""

_ROLE, _PART, _CALLS, _END = b"\x01", b"\x02", b"\x03", b"\x04"
"""Stand between what is written one after the other; no text holds them but by chance."""


def character_seed(secret: bytes, row: ModelRow, salt: bytes) -> int:
    """Return where the chain of a request begins.

    Args:
        secret: Random bytes of this process.
        row: Model and adapter.
        salt: What keeps the request out of a shared cache, empty for nothing.
    """
    fields = (row.name.encode(), row.adapter_of.encode(), salt)
    lengths = struct.pack("<3Q", *map(len, fields))
    return xxh3_64_intdigest(secret + lengths + b"".join(fields))


def character_blocks(text: bytes, bytes_max: int, seed: int, bytes_per_token: int) -> PromptBlocks:
    """Return the whole blocks of *text*, a prompt as :func:`flattened`.

    Args:
        text: All of it.
        bytes_max: How much of it becomes blocks.
        seed: Where the chain begins.
        bytes_per_token: How many bytes of it are believed to be a token.

    Complexity: O(min(len(text), bytes_max)).
    """
    block_bytes = BLOCK_TOKENS * bytes_per_token
    end = min(len(text), bytes_max) // block_bytes * block_bytes
    hashes: list[int] = []
    previous = seed
    for start in range(0, end, block_bytes):
        previous = xxh3_64_intdigest(text[start : start + block_bytes], previous)
        hashes.append(previous)
    return PromptBlocks(
        hashes=struct.pack(f">{len(hashes)}Q", *hashes),
        block_tokens=BLOCK_TOKENS,
        prompt_tokens=-(-len(text) // bytes_per_token),
        is_exact=False,
        cut="long" if len(text) - end >= block_bytes else "",
    )


def flattened(prompt: Prompt) -> bytes:
    """Return *prompt* as one text; that of more turns begins with that of fewer."""
    if isinstance(prompt, TextPrompt):
        return _bytes(prompt.text)
    if isinstance(prompt, Conversation):
        return b"".join(_pieces(prompt))
    return array("I", [token & TOKEN_ID_MAX for token in prompt.token_ids]).tobytes()


def _pieces(conversation: Conversation) -> Iterator[bytes]:
    for tool in conversation.tools or ():
        yield _json(tool)
        yield _END
    for message in conversation.messages:
        yield from _turn(message)


def _turn(message: Message) -> Iterable[bytes]:
    yield _bytes(message.role)
    yield _ROLE
    for number, part in enumerate(message.parts):
        if number:
            yield _PART
        yield _bytes(part) if isinstance(part, str) else xxh3_128_digest(_json(part.part))
    calls = message.rest.get("tool_calls")
    if calls is not None:
        yield _CALLS
        yield _json(calls)
    yield _END


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _json(value: object) -> bytes:
    return msgspec.json.encode(value)
