"""Changes of files are noticed without a watcher, and never missed."""

import os
from pathlib import Path

from inferencecache.clock import ManualClock
from inferencecache.transport.file_watch import FileWatch

SECOND_NS = 1_000_000_000


def rested(path: Path) -> ManualClock:
    """Return a clock that stands long after the last change of *path*."""
    return ManualClock(path.stat().st_ctime_ns + 10 * SECOND_NS)


def test_a_file_at_rest_is_asked_about_once(tmp_path: Path) -> None:
    """Nothing is read again while nothing changes."""
    path = tmp_path / "f"
    path.write_text("1")
    watch = FileWatch([str(path)], rested(path))
    assert [watch.take_change() for _ in range(3)] == [True, False, False]


def test_every_kind_of_change_is_noticed(tmp_path: Path) -> None:
    """Rewriting, replacing, touching, removing and coming back."""
    path = tmp_path / "f"
    path.write_text("1")
    clock = ManualClock(1 << 62)
    watch = FileWatch([str(path)], clock)
    assert watch.take_change()
    path.write_text("22")
    assert watch.take_change()
    (tmp_path / "g").write_text("33")
    (tmp_path / "g").replace(path)
    assert watch.take_change()
    os.utime(path, ns=(1, 1))
    assert watch.take_change()
    path.unlink()
    assert watch.take_change()
    assert not watch.take_change()
    path.write_text("33")
    assert watch.take_change()


def test_a_swapped_link_is_a_change(tmp_path: Path) -> None:
    """Kubernetes mounts files as links into a directory that it swaps."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text("same")
    (tmp_path / "data").symlink_to("old")
    watch = FileWatch([str(tmp_path / "data" / "f")], ManualClock(1 << 62))
    assert watch.take_change()
    (tmp_path / "fresh").symlink_to("new")
    (tmp_path / "fresh").replace(tmp_path / "data")
    assert watch.take_change()
    assert not watch.take_change()


def test_a_file_that_just_changed_is_looked_at_again(tmp_path: Path) -> None:
    """It could change once more within the resolution of its time stamps."""
    path = tmp_path / "f"
    path.write_text("1")
    changed_ns = path.stat().st_ctime_ns
    clock = ManualClock(changed_ns)
    watch = FileWatch([str(path)], clock)
    assert [watch.take_change() for _ in range(3)] == [True, True, True]
    clock.advance_ns(2 * SECOND_NS)
    assert [watch.take_change() for _ in range(2)] == [True, False]
