"""What one endpoint was sent: runs that are split, cut short, and taken back."""

from inferencecache.picker.prefix.shelf import Shelf

ABC, ABD, ABCE = (
    b"".join(letter.to_bytes(8) for letter in word) for word in (b"abc", b"abd", b"abce")
)
SOON_NS = 100


def held(shelf: Shelf, keys: bytes) -> int:
    """Return how much of *keys* is there, however old."""
    return shelf.held(keys, -1, is_expected=False)


def test_the_deepest_of_what_was_placed_longest_ago_goes_first() -> None:
    """The worked example: ``c`` before ``d`` before ``b`` and ``a``."""
    shelf = Shelf()
    shelf.place(ABC, 0, SOON_NS, 1)
    shelf.place(ABD, 1, SOON_NS, 2)
    assert (held(shelf, ABC), held(shelf, ABD), shelf.stretches) == (3, 3, 4)
    assert shelf.evict(3) == 1
    assert (held(shelf, ABC), held(shelf, ABD)) == (2, 3)
    assert shelf.evict(1) == 1
    assert (held(shelf, ABC), held(shelf, ABD)) == (2, 2)
    assert shelf.evict(1) == 1
    assert (held(shelf, ABC), shelf.stretches) == (1, 1)
    assert (shelf.evict(2), shelf.evict(2)) == (1, 0)


def test_a_run_is_shortened_and_grows_again() -> None:
    """What comes back belongs to the later placing alone, and is taken back with it."""
    shelf = Shelf()
    shelf.place(ABCE, 0, SOON_NS, 1)
    assert shelf.evict(2) == 2
    assert held(shelf, ABCE) == 2
    shelf.place(ABCE, 1, SOON_NS, 2)
    shelf.withdraw(ABCE, 1)
    assert held(shelf, ABCE) == 4
    shelf.withdraw(ABCE, 2)
    assert (held(shelf, ABCE), shelf.stretches) == (0, 0)


def test_each_part_of_a_run_is_as_old_as_its_last_placing() -> None:
    """Of two prompts only what both have was placed again."""
    shelf = Shelf()
    shelf.place(ABC, 0, SOON_NS, 1)
    shelf.place(ABD, 5, 2 * SOON_NS, 2)
    assert shelf.held(ABC, 0, is_expected=False) == 2
    assert shelf.held(ABC, SOON_NS, is_expected=True) == 2
    assert list(shelf.drop(0)) == [1]
    assert list(shelf.drop()) == [1, 2]
    assert shelf.stretches == 0
