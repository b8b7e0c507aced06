"""Words in the turns of a chat that tell what it is and what is in it.

Most chats hold none of them, and looking once for all takes less than looking for each.
"""

import re
from typing import Final

from msgspec import Raw

TOOL_USE: Final = b'"tool_use"'
DATA_KEY: Final = b'"data"'
_ANY: Final = re.compile(rb'"(?:tool_use|data)"')


def has_telling_words(messages: Raw) -> bool:
    """Return whether :data:`TOOL_USE` or :data:`DATA_KEY` stands anywhere in *messages*.

    Complexity: O(n).
    """
    return _ANY.search(messages) is not None
