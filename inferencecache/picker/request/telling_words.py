"""Words in the turns of a chat that tell what it is and what is in it.

Most chats hold none of them, and looking once for all takes less than looking for each. Neither has
to be looked for in a text: within one its quotes are escaped. So of turns that end with a long text
in which no quote stands only what comes before it is looked at, once where they have it in common.
"""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Raw

TOOL_USE: Final = b'"tool_use"'
DATA_KEY: Final = b'"data"'
_ANY: Final = re.compile(rb'"(?:tool_use|data)"')
_LONG_TURN_BYTES: Final = 1_024
"""To look for a word in less takes less than to find where the turn's text begins."""

_HEAD_BYTES_MAX: Final = 64
_WORD_BYTES_MAX: Final = len(TOOL_USE) + len("}")
_ODD_TURNS_MAX: Final = 4
"""Where so many are full of quotes, as code is, so are the others."""


def has_telling_words(messages: Raw, turns: Sequence[Raw] = ()) -> bool:
    """Return whether :data:`TOOL_USE` or :data:`DATA_KEY` stands anywhere in *messages*.

    Args:
        messages: The turns of a chat, valid JSON.
        turns: They one by one, where they were taken apart.

    Complexity: O(n).
    """
    if len(turns) * _LONG_TURN_BYTES > memoryview(messages).nbytes or not turns:
        return _ANY.search(messages) is not None
    plain_heads: set[bytes] = set()
    seen_bytes = odd_turns = 0
    for turn in map(bytes, turns):
        seen_bytes += len(turn)
        head = turn[: turn.rfind(b'"', 0, -2) + 1]
        if head in plain_heads and len(turn) - len(head) >= _WORD_BYTES_MAX:
            continue
        if _ANY.search(turn):
            return True
        if len(head) <= _HEAD_BYTES_MAX:
            plain_heads.add(head)
            continue
        odd_turns += 1
        if odd_turns == _ODD_TURNS_MAX:
            return _ANY.search(messages, seen_bytes) is not None  # what stands between is more
    return False
