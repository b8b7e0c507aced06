"""Whether a prompt is made of too many values to build them.

One call of the decoder builds all of a value and gives nobody a turn meanwhile, in whatever thread
it runs, and so does letting go of it: three million empty lists, which fit into a body of 8 MiB,
would hold the event loop for a third of a second.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Raw

from inferencecache.picker.request.structure import MARK, brackets_outside

QUICK_BYTES: Final = 1_048_576
"""Values in this many bytes are never too many."""

VALUES_MAX: Final = 250_000
"""Building this many takes about 30 ms. A prompt as long as a body may be has one per 33 bytes."""

_BEFORE_VALUES: Final = (b",", b"[", b"{")


def holds_many_values(raws: Iterable[Raw], values_max: int = VALUES_MAX) -> bool:
    """Return whether *raws* hold more than *values_max* values together.

    Args:
        raws: Valid JSON.
        values_max: Most members of lists and objects; of one that is empty it counts itself.

    Complexity: O(n) at the speed of memory, for what looks harmless after one look.
    """
    held = [bytes(raw) for raw in raws]
    if sum(data.count(before) for data in held for before in _BEFORE_VALUES) <= values_max:
        return False  # even if none of them stood in a text
    left = values_max
    for data in held:
        for outside in brackets_outside(data.replace(b",", MARK)):
            left -= len(outside) - outside.count(b"]")
            if left < 0:
                return True
    return False
