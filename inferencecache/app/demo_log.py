"""What the parts of a demo log, as far as somebody who looks on should hear of it: trouble."""

import sys
from collections import deque
from typing import Final

from inferencecache.transport.structured_log import Field

_KEPT_MAX: Final = 100


class DemoLog:
    """Keeps the errors until somebody takes them; everything else shows in other ways."""

    def __init__(self) -> None:
        self._errors: deque[str] = deque(maxlen=_KEPT_MAX)

    def take(self) -> list[str]:
        """Return the errors since the last call, the oldest first."""
        errors = list(self._errors)
        self._errors.clear()
        return errors

    def debug(self, event: str, **fields: Field) -> None:
        """Let it go."""

    def info(self, event: str, **fields: Field) -> None:
        """Let it go."""

    def warning(self, event: str, **fields: Field) -> None:
        """Let it go."""

    def error(self, event: str, **fields: Field) -> None:
        """Keep it."""
        told = (f"{name}={value}" for name, value in fields.items())
        self._errors.append(" ".join((event, *told)))

    def exception(self, event: str, **fields: Field) -> None:
        """Keep it with the exception that is handled."""
        self.error(event, **fields, error=repr(sys.exception()))
