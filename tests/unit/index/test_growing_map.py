"""A growing map finds what it has, oldest first, and no part of it becomes big."""

import pytest

from inferencecache.index import growing_map
from inferencecache.index.growing_map import GrowingMap


def test_worked_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """The docstring's example, step by step."""
    monkeypatch.setattr(growing_map, "SEGMENT_KEYS", 2)
    stamps: GrowingMap[str] = GrowingMap()
    assert (stamps.first(), stamps.newest, stamps.get(10)) == (None, None, None)
    for key in (10, 20, 30, 40, 50):
        stamps.append(key, f"at {key}")
    assert [list(segment) for segment in stamps._segments] == [[10, 20], [30, 40], [50]]

    stamps.remove(30)
    stamps.remove(40)
    assert [list(segment) for segment in stamps._segments] == [[10, 20], [50]]
    assert [stamps.get(key) for key in (5, 10, 20, 30, 50, 60)] == [
        *(None, "at 10", "at 20"),
        *(None, "at 50", None),
    ]
    assert (stamps.first(), stamps.newest) == ("at 10", 50)
    assert list(stamps.values()) == ["at 10", "at 20", "at 50"]


def test_emptied_from_the_front_it_goes_on() -> None:
    """The newest key is remembered when nothing is left."""
    stamps: GrowingMap[int] = GrowingMap()
    for key in range(10_000):
        stamps.append(key, -key)
    assert max(map(len, stamps._segments)) == growing_map.SEGMENT_KEYS
    for key in range(10_000):
        assert stamps.first() == -key
        stamps.remove(key)

    assert not stamps
    assert stamps.newest == 9_999
    stamps.append(10_000, 1)
    assert stamps.get(10_000) == 1
