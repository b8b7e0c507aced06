"""The file of bearer tokens: its form, and what its changes do."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from certificates import replace_file

from inferencecache.clock import ManualClock
from inferencecache.transport.auth_tokens import TokenFile, TokenFileError
from inferencecache.transport.system_clock import SystemClock


def digest(token: str) -> bytes:
    """Return what a token is known by."""
    return hashlib.sha256(token.encode()).digest()


def line(token: str) -> str:
    """Return the line of a token."""
    return digest(token).hex()


def knows(file: TokenFile, *tokens: str) -> list[bool]:
    """Return which tokens are accepted."""
    return [file.knows(digest(token)) for token in tokens]


def test_lines_are_hashes_with_words_for_people(tmp_path: Path) -> None:
    """Comments, names, blank lines, capitals and the output of sha256sum are fine."""
    path = tmp_path / "tokens"
    path.write_text(
        f"# controllers\n\n{line('a')}\n  {line('b').upper()}  -\n{line('c')} ci # spare\r\n"
    )
    file = TokenFile(str(path), SystemClock(), print)
    assert knows(file, "a", "b", "c", "d", "") == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "names no token"),
        ("# nothing\n", "names no token"),
        ("a-token-in-the-clear\n", "line 1: expected a SHA-256"),
        ("\n" + "0" * 63 + "\n", "line 2"),
        ("0" * 65 + "\n", "line 1"),
        ("\u00e9" * 64 + "\n", "line 1"),
        ("0" * 1_048_577, "larger than"),
    ],
)
def test_a_wrong_file_is_refused_without_showing_it(
    tmp_path: Path, content: str, words: str
) -> None:
    """Somebody may have put a token there by mistake."""
    path = tmp_path / "tokens"
    path.write_text(content)
    with pytest.raises(TokenFileError) as refused:
        TokenFile(str(path), ManualClock(), print)
    assert words in refused.value.reason
    assert "clear" not in refused.value.reason


@pytest.mark.parametrize("path", ["/absent/tokens", "\0"])
def test_a_file_that_cannot_be_read_is_refused(path: str) -> None:
    """The reason is the system's."""
    with pytest.raises(TokenFileError, match="cannot be read"):
        TokenFile(path, ManualClock(), print)


def test_changes_count_at_the_next_use(tmp_path: Path) -> None:
    """A token is added and another revoked without a restart."""
    path = tmp_path / "tokens"
    path.write_text(line("a"))
    file = TokenFile(str(path), SystemClock(), print)
    assert knows(file, "a", "b") == [True, False]
    replace_file(path, line("b").encode())
    assert knows(file, "a", "b") == [False, True]
    assert (file.reloads, file.failures) == (1, 0)


def test_a_bad_change_leaves_the_last_good_tokens(tmp_path: Path) -> None:
    """It is complained about once; emptying the file takes every token away."""
    path = tmp_path / "tokens"
    path.write_text(line("a"))
    complaints: list[str] = []
    file = TokenFile(str(path), SystemClock(), complaints.append)
    replace_file(path, b"oops")
    assert knows(file, "a", "a", "oops") == [True, True, False]
    path.unlink()
    assert knows(file, "a") == [True]
    assert len(complaints) == file.failures == 2
    for content in (b"", b" \n\n"):
        replace_file(path, content)
        assert knows(file, "a") == [True]
    assert "leave a comment" in complaints[-1]
    replace_file(path, b"# all revoked\n")
    assert knows(file, "a") == [False]


def test_every_bad_file_is_refused_on_its_own(tmp_path: Path) -> None:
    """Nine with one and the same mistake are nine; a bad one under a new time stamp is the old."""
    path = tmp_path / "tokens"
    path.write_text(line("a"))
    complaints: list[str] = []
    file = TokenFile(str(path), SystemClock(), complaints.append)
    for count in range(1, 10):
        replace_file(path, b"oops %d" % count)
        assert knows(file, "a", "a") == [True, True]
        assert file.failures == count
    path.touch()
    assert knows(file, "a") == [True]
    assert len(complaints) == file.failures == 9
    assert len(set(complaints)) == 1


def be_pipe(path: Path) -> None:
    """Be something that is open for reading only once somebody writes."""
    os.mkfifo(path)


def be_loop(path: Path) -> None:
    """Be a link that leads to itself."""
    path.symlink_to(path)


def be_endless(path: Path) -> None:
    """Be a device that never ends."""
    path.symlink_to("/dev/zero")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("become", [Path.mkdir, be_pipe, be_loop, be_endless])
def test_a_file_that_becomes_something_else_leaves_the_last_good_tokens(
    tmp_path: Path, become: Callable[[Path], None]
) -> None:
    """And nobody waits for it."""
    path = tmp_path / "tokens"
    path.write_text(line("a"))
    complaints: list[str] = []
    file = TokenFile(str(path), SystemClock(), complaints.append)
    path.unlink()
    become(path)
    assert knows(file, "a", "b") == [True, False]
    assert len(complaints) == 1
    assert str(path) in complaints[0]
