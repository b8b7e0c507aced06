"""Where the turns of a chat stand in its body, and what they are.

Rules of this file: the document is valid JSON and an object, and its turns were read out of it.

Theory of operation: almost always there is one key of that name, and what stands between two turns
is the same between all. So they are written once more the same way, and compared at the speed of
memory, which takes a fifth of reading them again. Behind a key that is the only one of its name
outside of them, in whatever way it is written, stands nobody else's value.
"""

import re
from collections.abc import Sequence
from struct import Struct
from typing import Final

from msgspec import Raw

from inferencecache.picker.bodies import Span

_KEY: Final = b'"messages"'
_ESCAPED_LETTER: Final = rb"\u00"
_BACKSLASH: Final = 0x5C
_OBJECT: Final = (ord("{"),)
_FIRST_BYTE: Final = Struct("B").unpack_from
"""Takes a third of a view of each."""

_SPACE: Final = rb"[ \t\n\r]*"
_BEFORE: Final = re.compile(_SPACE + b":" + _SPACE + rb"(\[)" + _SPACE)
_BETWEEN: Final = re.compile(_SPACE + b"," + _SPACE)
_BEHIND: Final = re.compile(_SPACE + rb"\]")


def place_of_turns(data: bytes, turns: Sequence[Raw]) -> Span | None:
    """Return where the list of *turns* stands, brackets included; None if that is not certain.

    Args:
        data: A valid JSON object.
        turns: What stands in its ``messages``.

    Complexity: O(n) at the speed of memory.
    """
    key = data.find(_KEY)
    if not turns or key <= 0 or data[key - 1] == _BACKSLASH:
        return None
    before = _BEFORE.match(data, key + len(_KEY))
    if before is None:
        return None
    between = _BETWEEN.match(data, before.end() + memoryview(turns[0]).nbytes)
    written = (b"," if between is None else between[0]).join(turns)
    if not data.startswith(written, before.end()):
        return None
    behind = _BEHIND.match(data, before.end() + len(written))
    if behind is None or _may_hold_key(data, behind.end(), len(data)):
        return None
    return None if _may_hold_key(data, 0, key) else Span(before.start(1), behind.end())


def _may_hold_key(data: bytes, start: int, end: int) -> bool:
    return data.find(_KEY, start, end) >= 0 or data.find(_ESCAPED_LETTER, start, end) >= 0


def further_objects(turns: Sequence[Raw]) -> int:
    """Return how many of *turns* are objects, beside the first that is one."""
    return max(list(map(_FIRST_BYTE, turns)).count(_OBJECT) - 1, 0)
