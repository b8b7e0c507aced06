"""Whatever a template or a tokenizer raises is an answer; what ends a process is not."""

import pytest

from inferencecache.transport.tokenize_guard import WorkFailure, guarded


class PanicException(BaseException):
    """What a bug in a tokenizer raises."""


def raising(error: BaseException) -> object:
    """Return what raises *error*."""

    def work() -> None:
        raise error

    return guarded(work)


@pytest.mark.parametrize("error", [ValueError("secret"), PanicException("secret")], ids=repr)
def test_what_is_raised_is_told_by_its_kind_and_place(error: BaseException) -> None:
    """Its text may quote a prompt, and is not told."""
    failure = raising(error)

    assert isinstance(failure, WorkFailure)
    assert failure.error is error
    assert failure.summary.startswith(f"{type(error).__name__} at ")
    assert "secret" not in failure.summary


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)], ids=repr)
def test_what_ends_a_process_goes_on(error: BaseException) -> None:
    """Nobody asked the guard to keep it."""
    with pytest.raises(type(error)):
        raising(error)


def test_words_of_our_own_are_told() -> None:
    """They hold nothing of a prompt."""
    assert WorkFailure(ValueError("secret"), "HTTP status 404").summary == "HTTP status 404"


def test_what_is_returned_is_returned() -> None:
    """The guard changes nothing."""
    assert guarded(lambda: 5) == 5
