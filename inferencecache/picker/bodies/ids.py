"""Ids that cannot be guessed, never 0 and never in use twice."""

from collections.abc import Callable, Container

NewId = Callable[[], int]
"""Draws a number of 64 random bits; 0 and repetitions are sorted out here."""


def fresh_id(draw: NewId, *taken: Container[int]) -> int:
    """Return a drawn number that is not 0 and in none of *taken*."""
    while True:
        number = draw()
        if number and not any(number in ids for ids in taken):
            return number
