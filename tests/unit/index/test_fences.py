"""A fence keeps out reports older than the last clear, for one TTL, in bounded number."""

from inferencecache.index.fences import ClearFences

KEY = ("t1", "m1", "r1")


def test_only_strictly_older_stamps_are_kept_out() -> None:
    """A report stamped at the very time of the clear is let in."""
    fences = ClearFences(8)
    fences.raise_to(KEY, 100, 1_000)

    assert fences.blocks(KEY, 99, 150)
    assert not fences.blocks(KEY, 100, 150)
    assert not fences.blocks(("t1", "m2", "r1"), 99, 150)


def test_an_older_clear_never_lowers_the_fence() -> None:
    """The latest clear counts, in whatever order clears arrive."""
    fences = ClearFences(8)
    fences.raise_to(KEY, 100, 1_000)
    fences.raise_to(KEY, 50, 900)

    assert fences.blocks(KEY, 99, 950)
    assert len(fences) == 1


def test_a_fence_ends_with_its_time() -> None:
    """After one TTL the fence neither blocks nor takes space."""
    fences = ClearFences(8)
    fences.raise_to(KEY, 100, 1_000)

    assert not fences.blocks(KEY, 99, 1_000)
    fences.expire(1_000)
    assert len(fences) == 0


def test_the_first_to_expire_makes_room() -> None:
    """The number of fences is bounded."""
    fences = ClearFences(2)
    for number in (3, 1, 2):
        fences.raise_to(("t", "m", f"r{number}"), 10, 100 + number)

    assert len(fences) == 2
    assert not fences.blocks(("t", "m", "r1"), 9, 50)
    assert fences.blocks(("t", "m", "r3"), 9, 50)
