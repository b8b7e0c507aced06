"""What an endpoint has to do, as one request sees it."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSnapshot:
    """The load of one endpoint at the moment at which a Pick looked at all of them.

    Signals of the engine are None where nobody reads them, or where they are too old.

    Attributes:
        requests_in_flight: Given to it by this picker and not ended.
        waiting: Requests in the engine's queue.
        running: Requests that the engine works on.
        cache_usage: Share of the engine's cache that is in use, 0 to 1.
        adapters: LoRA adapters that the engine has loaded.
        waiting_adapters: Adapters that requests in its queue wait for.
        adapters_max: How many it can have loaded at once.
    """

    requests_in_flight: int = 0
    waiting: int | None = None
    running: int | None = None
    cache_usage: float | None = None
    adapters: frozenset[str] | None = None
    waiting_adapters: frozenset[str] = frozenset()
    adapters_max: int | None = None


NO_LOAD: Final = LoadSnapshot()
"""Of an endpoint that nobody has sent anything to, and whose engine says nothing."""
