"""The one place where whatever a plugin raises is caught.

Plugins come from anybody; what one of them raises is an answer to the director, which counts it and
goes on. That holds for what ends programs and tasks, too: neither is a plugin's to end. Nothing
else of the picker is called from here.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar, TypeVarTuple, Unpack

Arguments = TypeVarTuple("Arguments")
ResultT = TypeVar("ResultT")


class PluginFailure(NamedTuple):
    """What a plugin raised.

    Attributes:
        error: The exception.
    """

    error: BaseException


def guarded(
    call: Callable[[Unpack[Arguments]], ResultT], *args: *Arguments
) -> ResultT | PluginFailure:
    """Return what *call* returns, or what it raised; an interrupt is none of a plugin's."""
    try:
        return call(*args)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - third parties may raise anything
        return PluginFailure(error)
