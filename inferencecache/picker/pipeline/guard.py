"""The one place where whatever a plugin raises is caught.

Plugins come from anybody; what one of them raises is an answer to the director, which counts it and
goes on. Nothing else of the picker is called from here.
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

    error: Exception


def guarded(
    call: Callable[[Unpack[Arguments]], ResultT], *args: *Arguments
) -> ResultT | PluginFailure:
    """Return what *call* returns, or what it raised."""
    try:
        return call(*args)
    except Exception as error:  # noqa: BLE001 - third parties may raise anything
        return PluginFailure(error)
