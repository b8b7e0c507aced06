"""Names for prompts that say nothing about them.

A name is the same for the same prompt while this process lives. Its key is random and nowhere else,
so that nobody can find out from a name what a prompt was by trying prompts.
"""

import struct
from hashlib import sha256
from typing import Final

from inferencecache.picker.prompt.prompt_body import PromptBody

_LENGTH: Final = struct.Struct("<BQ").pack


class PromptNames:
    """Names prompts.

    Args:
        key: Random bytes of this process, 32 of them or more.
    """

    __slots__ = ("_keyed",)

    def __init__(self, key: bytes) -> None:
        self._keyed = sha256(key)

    def name_of(self, body: PromptBody, context: bytes) -> bytes:
        """Return the name of a prompt.

        Args:
            body: Everything in the request that can change its tokens.
            context: Everything else that does: whose tokens, block size, the API.

        Complexity: O(n); 10 microseconds for 10 KB.
        """
        digest = self._keyed.copy()
        digest.update(_LENGTH(len(body.parts), len(context)) + context)
        for place, part in body.parts:
            digest.update(_LENGTH(place, memoryview(part).nbytes))
            digest.update(part)
        return digest.digest()
