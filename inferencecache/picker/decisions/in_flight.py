"""How many requests each destination has been given and not yet finished."""

from collections.abc import Iterator


class InFlight:
    """Counts by destination; one that has none takes no memory.

    Destinations are named, not referred to: one that goes and comes back under its name goes on
    with the requests it still has.
    """

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._counts.items())

    @property
    def total(self) -> int:
        """Over all destinations."""
        return sum(self._counts.values())

    def of(self, destination: str) -> int:
        """Return the count of *destination*, never negative."""
        return self._counts.get(destination, 0)

    def begin(self, destination: str) -> None:
        """Count one more."""
        self._counts[destination] = self.of(destination) + 1

    def end(self, destination: str) -> None:
        """Count one less."""
        left = self.of(destination) - 1
        if left > 0:
            self._counts[destination] = left
        else:
            self._counts.pop(destination, None)
