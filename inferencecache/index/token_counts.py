"""Cumulative token counts of consecutive blocks, stored in constant space where they are regular.

Blocks of one size count 16, 32, 48, ...: an arithmetic progression, kept as a ``range``. Anything
else is a tuple. Both slice, index and compare alike.
"""

from collections.abc import Sequence
from itertools import accumulate

from inferencecache.types import INT32_MAX

TokenCounts = range | tuple[int, ...]


def cumulative(per_block: Sequence[int]) -> TokenCounts:
    """Sum *per_block* up to each block, saturating at 2^31-1.

    Args:
        per_block: Tokens of each block, >= 0, not empty.

    Complexity: O(blocks), about 1 ns each when all but the first are equal.
    """
    blocks = len(per_block)
    first = per_block[0]
    step = per_block[-1]
    regular = per_block.count(step) + (first != step) == blocks
    if regular and step > 0 and first + step * (blocks - 1) <= INT32_MAX:
        return range(first, first + step * blocks, step)
    return tuple(min(total, INT32_MAX) for total in accumulate(per_block))


def compact(counts: Sequence[int]) -> TokenCounts:
    """Keep already cumulative *counts* as a range if they are regular.

    Complexity: O(blocks), about 15 ns each.
    """
    if isinstance(counts, range):
        return counts
    first = counts[0]
    step = counts[1] - first if len(counts) > 1 else 1
    if step > 0:
        regular = range(first, first + step * len(counts), step)
        if len(counts) == 1 or list(regular) == counts:
            return regular
    return tuple(counts)


def concatenated(left: TokenCounts, right: TokenCounts) -> TokenCounts | None:
    """Return *left* followed by *right* if the result is regular, else None.

    Complexity: O(1).
    """
    if not isinstance(left, range) or not isinstance(right, range):
        return None
    step = right[0] - left[-1]
    if step <= 0 or _step_differs(left, step) or _step_differs(right, step):
        return None
    return range(left[0], left[0] + step * (len(left) + len(right)), step)


def _step_differs(counts: range, step: int) -> bool:
    return len(counts) > 1 and counts.step != step
