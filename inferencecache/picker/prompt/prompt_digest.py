"""Names for prompts that say nothing about them.

A name is the same for the same prompt while this process lives. Its key is random and nowhere else,
so that nobody can find out from a name what a prompt was by trying prompts.

A conversation also has names for how it begins, each for everything in the request that can change
tokens and for so many of its turns. It is what a longer conversation with the same name begins
with, so one look at all bytes finds what is known of them. No name of one kind is one of the other:
the list of turns is still open in those for beginnings.
"""

import struct
from hashlib import sha256
from typing import Final, NamedTuple
from weakref import ref

import msgspec

from inferencecache.picker.prompt.prompt_body import PromptBody
from inferencecache.picker.request.envelope import PromptKeys

_LENGTH: Final = struct.Struct("<BQ").pack
_TURNS: Final = 255
"""In the place of a key: no more of them come."""

_LATEST: Final = 16
"""An answer, and results of as many tools as are called at a time."""


class PromptName(msgspec.Struct, frozen=True, gc=False):
    """What a prompt is called.

    Attributes:
        whole: All of it.
        beginnings: With so many turns as there are, and with the latest left out one by one; the
            shortest first, none for what is no long conversation.
    """

    whole: bytes
    beginnings: tuple[bytes, ...] = ()


class _Named(NamedTuple):
    """The prompt that was named last.

    Attributes:
        keys: Its values, for as long as somebody else has them.
        turns: How many were taken apart.
        context: In what.
        name: What it is called.
    """

    keys: ref[PromptKeys]
    turns: int
    context: bytes
    name: PromptName


class PromptNames:
    """Names prompts.

    Args:
        key: Random bytes of this process, 32 of them or more.
    """

    __slots__ = ("_keyed", "_last")

    def __init__(self, key: bytes) -> None:
        self._keyed = sha256(key)
        self._last: _Named | None = None

    def name_of(self, body: PromptBody, context: bytes) -> PromptName:
        """Return the name of a prompt.

        Args:
            body: Everything in the request that can change its tokens.
            context: Everything else that does: whose tokens, block size, the API.

        Complexity: O(n); 10 microseconds for 10 KB. O(1) where a Pick asks again, as it does for
        each of several worker sets.
        """
        last, keys, turns = self._last, body.keys, len(body.turns)
        if last is None or last.keys() is not keys or last[1:3] != (turns, context):
            last = self._last = _Named(ref(keys), turns, context, self._name(body, context))
        return last.name

    def _name(self, body: PromptBody, context: bytes) -> PromptName:
        digest = self._keyed.copy()
        digest.update(_LENGTH(len(body.parts), len(context)) + context)
        for place, part in body.parts:
            digest.update(_LENGTH(place, memoryview(part).nbytes))
            digest.update(part)
        if not body.turns:
            return PromptName(digest.digest())
        digest.update(_LENGTH(_TURNS, 0))
        digest.update(b",".join([b"[", *body.turns[:-_LATEST]]))
        beginnings = []
        for turn in body.turns[-_LATEST:]:
            digest.update(b",")
            digest.update(turn)
            beginnings.append(digest.digest())
        digest.update(b"]")
        return PromptName(digest.digest(), tuple(beginnings))
