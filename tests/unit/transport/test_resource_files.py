"""Reading a directory as one picture, within limits."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.settings.resources import ResourceSettings
from inferencecache.transport import resource_files
from inferencecache.transport.resource_files import DirectoryError, ResourceFiles

LONG_AGO_NS = 1_000_000 * NS_PER_S


def files_of(directory: Path, *, now_ns: int = 2**62, **limits: int) -> ResourceFiles:
    """Return a reader; at its time every change is long ago unless told otherwise."""
    settings = ResourceSettings(directory=str(directory), **limits)  # type: ignore[arg-type] # numbers
    return ResourceFiles(settings, ManualClock(now_ns))


def test_a_file_that_looks_the_same_is_not_read_again(tmp_path: Path) -> None:
    """A look costs one glance per file."""
    (tmp_path / "a.yaml").write_text("a")
    files = files_of(tmp_path)

    (first,) = files.read()
    (second,) = files.read()

    assert second is first


def test_a_young_file_is_read_again(tmp_path: Path) -> None:
    """A change right after another one may leave every timestamp as it was."""
    path = tmp_path / "a.yaml"
    path.write_text("1")
    files = files_of(tmp_path, now_ns=path.stat().st_mtime_ns)
    files.read()
    times = path.stat()
    with path.open("r+") as stream:
        stream.write("2")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    (source,) = files.read()

    assert source.content == b"2"


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"files_max": 1}, "more than 1 resource files"),
        ({"total_bytes_max": 1_500}, "more than 1500 bytes in all"),
    ],
)
def test_too_much_is_no_picture(tmp_path: Path, limits: dict[str, int], reason: str) -> None:
    """A wrong path, to somebody's home for example, does not fill the memory."""
    for name in ("a.yaml", "b.json"):
        (tmp_path / name).write_text("x" * 1_000)

    with pytest.raises(DirectoryError, match=reason):
        files_of(tmp_path, **limits).read()


@pytest.fixture
def meddle(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Return a function that has something done before each reading of a file."""

    def install(act: Callable[[], object]) -> None:
        read = resource_files._content

        def read_later(path: str, bytes_expected: int) -> bytes:
            act()
            return read(path, bytes_expected)

        monkeypatch.setattr(resource_files, "_content", read_later)

    return install


def test_a_picture_that_moves_is_taken_again(
    tmp_path: Path, meddle: Callable[[Callable[[], object]], None]
) -> None:
    """Two files never come from two versions."""
    (tmp_path / "a.yaml").write_text("1")
    (tmp_path / "b.yaml").write_text("1")
    turns = iter([1, 2, 3])

    def change() -> None:
        if next(turns, 0) == 2:
            for name in ("a.yaml", "b.yaml"):
                (tmp_path / name).write_text("22")

    meddle(change)

    assert [source.content for source in files_of(tmp_path).read()] == [b"22", b"22"]


def test_what_never_holds_still_is_no_picture(
    tmp_path: Path, meddle: Callable[[Callable[[], object]], None]
) -> None:
    """The state before stays until it does."""
    path = tmp_path / "a.yaml"
    path.write_text("1")
    meddle(lambda: path.write_text(path.read_text() + "1"))

    with pytest.raises(DirectoryError, match="change faster than they can be read"):
        files_of(tmp_path).read()


def test_a_file_that_cannot_be_opened_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are read all the same."""
    (tmp_path / "a.yaml").write_text("1")

    def refuse(_path: str, _bytes_expected: int) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(resource_files, "_content", refuse)

    (source,) = files_of(tmp_path).read()

    assert (source.content, source.problem) == (b"", "Permission denied")


def test_reads_that_come_in_pieces_are_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems give less than was asked for."""
    (tmp_path / "a.yaml").write_text("abc")
    read = os.read
    monkeypatch.setattr(resource_files.os, "read", lambda opened, _size: read(opened, 1))

    (source,) = files_of(tmp_path).read()

    assert source.content == b"abc"
