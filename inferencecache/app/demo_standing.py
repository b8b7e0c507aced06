"""How a demo stands, and who looks on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from inferencecache.app.demo_fleet import DemoFleet


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStanding:
    """One engine so far.

    Attributes:
        name: Its name in the index.
        layout: The release it imitates.
        is_down: Whether it was killed and is not back.
        requests: Made-up prompts it served.
        running: Requests that it computes or answers.
        waiting: Requests that wait for it.
        hit_ratio: Share of prompt tokens it found cached in this life, 0 to 1.
        usage_ratio: Used share of its cache, 0 to 1.
        messages: Messages it published in this life.
        behind: Messages its subscriber has not taken in.
        restarts: Restarts its subscriber noticed.
    """

    name: str
    layout: str
    is_down: bool
    requests: int
    running: int
    waiting: int
    hit_ratio: float
    usage_ratio: float
    messages: int
    behind: int
    restarts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderStanding:
    """The provider so far.

    Attributes:
        answered: Requests that came with its key.
        refused: Requests that came with another one.
    """

    answered: int
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoStanding:
    """The whole demo so far.

    Attributes:
        elapsed_s: Seconds since the start.
        requests: Made-up prompts served.
        hit_ratio: Share of prompt tokens found cached, 0 to 1.
        round_robin_hit_ratio: The same for round robin.
        reason_codes: Lookups by reason code.
        entries: Entries of the index.
        lookup_p50_ms: Median time of a lookup, in milliseconds.
        lookup_p99_ms: Its 99th percentile.
        engines: Per engine.
        provider: The provider.
        suppressed_s: For how many more seconds the picker leaves somebody alone, by name; 0 where
            one request may try it.
        differences: Keys on which index and engines disagree; None while traffic runs.
    """

    elapsed_s: float
    requests: int
    hit_ratio: float
    round_robin_hit_ratio: float
    reason_codes: dict[str, int]
    entries: int
    lookup_p50_ms: float
    lookup_p99_ms: float
    engines: Sequence[EngineStanding]
    provider: ProviderStanding
    suppressed_s: Mapping[str, float]
    differences: int | None = None


class DemoWatcher(Protocol):
    """Somebody who looks on."""

    def started(self, fleet: DemoFleet) -> None:
        """Note where everything listens."""
        ...

    def told(self, news: str) -> None:
        """Note in a line what has happened."""
        ...

    def played(self, standing: DemoStanding) -> None:
        """Note how it stands; called about four times a second."""
        ...
