"""What is counted of the resource files."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from inferencecache.transport.metric_catalog import MetricKind, MetricSpec
from inferencecache.transport.metric_cells import Counts, Durations, Family, LabelValues

UNKNOWN_KIND: Final = "unknown"

RESOURCE_ERRORS: Final = MetricSpec(
    name="inferencecache_resource_errors",
    kind=MetricKind.GAUGE,
    labels=("kind",),
    help="Errors in the resource files now; kind is unknown for what cannot be told to be one.",
)
RESOURCE_OBJECTS: Final = MetricSpec(
    name="inferencecache_resource_objects",
    kind=MetricKind.GAUGE,
    labels=("kind", "state"),
    help="Resource objects accepted, by kind and by what became of them.",
)
RESOURCE_HELD: Final = MetricSpec(
    name="inferencecache_resource_objects_held",
    kind=MetricKind.GAUGE,
    help="Resource objects in their last good state because what the files say now is wrong.",
)
RESOURCE_READABLE: Final = MetricSpec(
    name="inferencecache_resource_directory_readable",
    kind=MetricKind.GAUGE,
    help="1 if the resource directory could be read last time, 0 if its last good state stays.",
)
RESOURCE_RELOADS: Final = MetricSpec(
    name="inferencecache_resource_reloads_total",
    kind=MetricKind.COUNTER,
    labels=("outcome",),
    help="Looks at the resource directory, by what they found: changed, unchanged or unreadable.",
)
RESOURCE_RELOAD_DURATION: Final = MetricSpec(
    name="inferencecache_resource_reload_duration_seconds",
    kind=MetricKind.HISTOGRAM,
    buckets_seconds=(0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0),
    help="Time from finding changed resource files to having them in force, others working too.",
)

RESOURCE_CATALOG: Final = (
    RESOURCE_ERRORS,
    RESOURCE_OBJECTS,
    RESOURCE_HELD,
    RESOURCE_READABLE,
    RESOURCE_RELOADS,
    RESOURCE_RELOAD_DURATION,
)
"""All of them, in the order of the reference page."""


class ReloadOutcome(StrEnum):
    """What a look at the directory found."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    UNREADABLE = "unreadable"


class ResourceMetrics:
    """The numbers of the resource files.

    Args:
        kinds: Names of the kinds that there are.
    """

    def __init__(self, kinds: list[str]) -> None:
        self._kinds = kinds
        self._reloads = Counts()
        for outcome in ReloadOutcome:
            self._reloads.add((outcome.value,), amount=0)
        self._durations = Durations(RESOURCE_RELOAD_DURATION.buckets_seconds)
        self._is_readable = False
        self._errors: Mapping[str, int] = {}
        self._objects: Mapping[str, Mapping[str, int]] = {}
        self._held = 0

    def looked(self, outcome: ReloadOutcome) -> None:
        """Count a look at the directory."""
        self._reloads.add((outcome.value,))
        self._is_readable = outcome is not ReloadOutcome.UNREADABLE

    def loaded(
        self, errors: Mapping[str, int], objects: Mapping[str, Mapping[str, int]], held: int
    ) -> None:
        """Show new numbers from now on.

        Args:
            errors: By kind, under an empty name for unknown kinds.
            objects: By kind and state.
            held: Objects in their last good state.
        """
        self._errors, self._objects, self._held = errors, objects, held

    def took(self, duration_ns: int) -> None:
        """Count how long a reload took that changed something."""
        self._durations.observe(duration_ns)

    def families(self) -> list[Family]:
        """Return a copy of all the numbers."""
        errors: dict[LabelValues, float] = {
            (kind,): self._errors.get(kind, 0) for kind in self._kinds
        }
        errors[UNKNOWN_KIND,] = self._errors.get("", 0)
        return [
            Family(RESOURCE_ERRORS, errors),
            Family(
                RESOURCE_OBJECTS,
                {
                    (kind, state): count
                    for kind, states in self._objects.items()
                    for state, count in states.items()
                },
            ),
            Family(RESOURCE_HELD, {(): self._held}),
            Family(RESOURCE_READABLE, {(): int(self._is_readable)}),
            Family(RESOURCE_RELOADS, self._reloads.rows()),
            Family(RESOURCE_RELOAD_DURATION, spreads={(): self._durations.spread()}),
        ]
