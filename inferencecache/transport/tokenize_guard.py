"""The one place where whatever a template or a tokenizer raises is caught.

Both come with a model, from anybody: a template refuses a conversation by raising, divides by what
a client sent, or calls what is no function. What is raised is an answer to the reader of prompts,
which counts it and goes on. Nothing else of the picker is called from here.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

ResultT = TypeVar("ResultT")

_PANIC: Final = "PanicException"
"""What the tokenizers' own language raises for its bugs; no Exception, though it ends nothing."""


class WorkFailure(NamedTuple):
    """What was raised.

    Attributes:
        error: The exception; its text may quote a prompt.
        words: What it means, in words that do not; empty if nobody has any.
    """

    error: BaseException
    words: str = ""

    @property
    def summary(self) -> str:
        """What was raised and where, without its text."""
        if self.words:
            return self.words
        trace = self.error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = "" if trace is None else f" at {trace.tb_frame.f_globals.get('__name__')}"
        return f"{type(self.error).__name__}{where}"


def guarded(work: Callable[[], ResultT]) -> ResultT | WorkFailure:
    """Return what *work* returns, or what it raised."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - models bring code of third parties
        return WorkFailure(error)
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        return WorkFailure(error)
