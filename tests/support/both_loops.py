"""Run a test on the event loop of Python and on the one that servers use: they differ."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Final

import pytest
import uvloop

_RUN: Final[dict[str, Callable[[Coroutine[Any, Any, None]], None]]] = {
    "asyncio": asyncio.run,
    "uvloop": uvloop.run,
}


def on_both_loops(
    test: Callable[..., Coroutine[Any, Any, None]],
) -> Callable[..., None]:
    """Return *test*, an ordinary one that runs twice."""

    def run_on(event_loop: str, **fixtures: Any) -> None:
        _RUN[event_loop](test(**fixtures))

    run_on.__name__, run_on.__doc__, run_on.__module__ = (
        test.__name__,
        test.__doc__,
        test.__module__,
    )
    own = inspect.signature(test).parameters.values()
    first = inspect.Parameter("event_loop", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run_on.__signature__ = inspect.Signature([first, *own])  # type: ignore[attr-defined] # for pytest
    for mark in getattr(test, "pytestmark", ()):
        run_on = getattr(pytest.mark, mark.name)(*mark.args, **mark.kwargs)(run_on)
    return pytest.mark.parametrize("event_loop", _RUN)(run_on)
