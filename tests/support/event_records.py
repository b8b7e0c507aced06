"""A log that tests can wait on."""

import asyncio
from typing import Any

WAIT_SECONDS = 20.0


class RecordedLog:
    """Keeps events and hands them to whoever waits for them.

    Attributes:
        events: Every event so far with its fields.
    """

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._arrived = asyncio.Event()

    def debug(self, event: str, **fields: Any) -> None:
        """Keep *event*."""
        self._keep(event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """Keep *event*."""
        self._keep(event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Keep *event*."""
        self._keep(event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """Keep *event*."""
        self._keep(event, fields)

    def exception(self, event: str, **fields: Any) -> None:
        """Keep *event*."""
        self._keep(event, fields)

    def named(self, event: str) -> list[dict[str, Any]]:
        """Return the fields of every *event* so far."""
        return [fields for name, fields in self.events if name == event]

    async def wait_for(self, event: str, count: int = 1) -> dict[str, Any]:
        """Wait until there have been *count* of *event*, and return the last one's fields."""
        async with asyncio.timeout(WAIT_SECONDS):
            while len(self.named(event)) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.named(event)[-1]

    def _keep(self, event: str, fields: dict[str, Any]) -> None:
        self.events.append((event, fields))
        self._arrived.set()
