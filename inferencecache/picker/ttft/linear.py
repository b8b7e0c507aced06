"""Solve a few linear equations."""

from collections.abc import Sequence


def solved(rows: Sequence[list[float]], wanted: list[float]) -> list[float]:
    """Return the values for which *rows* give *wanted*, by elimination.

    >>> solved([[2.0, 1.0], [1.0, 3.0]], [5.0, 10.0])
    [1.0, 3.0]

    Args:
        rows: A symmetric matrix whose eigenvalues are above 0; it is used up.
        wanted: As many numbers; used up, too.

    Complexity: O(n^3) in the rows.
    """
    size = len(wanted)
    for pivot in range(size):
        upper = rows[pivot]
        for below in range(pivot + 1, size):
            lower = rows[below]
            factor = lower[pivot] / upper[pivot]
            if factor:
                for column in range(pivot, size):
                    lower[column] -= factor * upper[column]
                wanted[below] -= factor * wanted[pivot]
    values = [0.0] * size
    for row in range(size - 1, -1, -1):
        known = sum(rows[row][column] * values[column] for column in range(row + 1, size))
        values[row] = (wanted[row] - known) / rows[row][row]
    return values
