"""What of a body can change its prompt, each value still as bytes."""

import codecs
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from inferencecache.picker.request import BadBodyError, TopLevel
from inferencecache.picker.request.envelope import ABSENT, PromptKeys, read_top_level, read_value


class PromptBody(msgspec.Struct, frozen=True):
    """A body as far as its prompt goes.

    Attributes:
        keys: Its values as they are written.
        turns: Its messages, where they were taken apart.
        parts: The other values that are there, each after its place among
            :class:`~inferencecache.picker.request.envelope.PromptKeys`.
        length: Bytes of the whole body.
    """

    keys: PromptKeys
    turns: Sequence[Raw]
    parts: tuple[tuple[int, Raw], ...]
    length: int

    @property
    def salt(self) -> bytes:
        """What keeps the request out of a shared cache, as it is written; empty for nothing."""
        salt, further = self.keys.cache_salt, self.keys.extra_key
        if salt is ABSENT and further is ABSENT:
            return b""
        salts = [b"" if bytes(raw) in _EMPTY else bytes(raw) for raw in (salt, further)]
        return b"\n".join(salts) if any(salts) else b""


_KEYS: Final = len(PromptKeys.__struct_fields__)
"""They are the first of those that are read."""

_EMPTY: Final = frozenset({b"", b"null", b'""'})


def read_prompt_body(data: bytes) -> PromptBody | None:
    """Return what *data*, a body that was parsed before, says of its prompt; None for nothing.

    Complexity: O(n) at the speed of memory; no value is built.
    """
    try:
        return prompt_body_of(read_top_level(data.removeprefix(codecs.BOM_UTF8)))
    except BadBodyError:
        return None


def prompt_body_of(top_level: TopLevel) -> PromptBody:
    """Return what a body that was read says of its prompt."""
    keys, turns, _, length = top_level
    first = 1 if turns else 0
    places = enumerate(msgspec.structs.astuple(keys)[first:_KEYS], first)
    parts = tuple(part for part in places if part[1] is not ABSENT)
    return PromptBody(keys, turns, parts, length)


def is_given(raw: Raw) -> bool:
    """Return whether *raw* is there and not null."""
    return raw is not ABSENT and bytes(memoryview(raw)[:4]) != b"null"


def is_true(raw: Raw, default: bool) -> bool:  # noqa: FBT001 - the default of a switch
    """Return *raw* as a switch."""
    said = None if raw is ABSENT else read_value(raw, bool)
    return default if said is None else said
