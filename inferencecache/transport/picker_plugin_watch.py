"""Count what plugins do wrong and how long producers take, and say so in the log now and then."""

from collections import defaultdict
from collections.abc import Collection

from inferencecache.clock import Clock
from inferencecache.picker.pipeline import FailureKind, Hook
from inferencecache.transport import picker_plugin_catalog as catalog
from inferencecache.transport.metric_cells import Counts, Durations, Family, LabelValues, Spread
from inferencecache.transport.structured_log import EventLog


class PluginWatch:
    """The observer of a pipeline.

    Its labels come from the configuration in force, which bounds them.

    Args:
        log: Gets a line for the first failure of each kind and interval.
        clock: Measures the interval.
        interval_ns: Shortest time between two lines of a kind.
    """

    def __init__(self, log: EventLog, clock: Clock, interval_ns: int) -> None:
        self._log = log
        self._clock = clock
        self._interval_ns = interval_ns
        self._config_loads = Counts()
        self._is_config_refused = False
        self._failures = Counts()
        self._producer_failures = Counts()
        self._durations: defaultdict[str, Durations] = defaultdict(_durations)
        self._next_line_ns: dict[LabelValues, int] = {}
        self._unlogged: defaultdict[LabelValues, int] = defaultdict(int)

    def plugin_failed(
        self, plugin: str, hook: Hook, kind: FailureKind, error: BaseException | None
    ) -> None:
        """Count a failure; of what was raised only the type is logged, it may quote a request."""
        labels = (plugin, hook.value, kind.value)
        if hook is Hook.PRODUCE:
            self._producer_failures.add((plugin, kind.value))
        else:
            self._failures.add(labels)
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._next_line_ns.get(labels, now_ns):
            self._unlogged[labels] += 1
            return
        self._next_line_ns[labels] = now_ns + self._interval_ns
        self._log.warning(
            "picker_plugin_failed",
            plugin=plugin,
            hook=hook.value,
            kind=kind.value,
            error=type(error).__name__ if error is not None else "",
            unlogged=self._unlogged.pop(labels, 0),
        )

    def produced(self, producer: str, duration_ns: int) -> None:
        """Measure a producer."""
        self._durations[producer].observe(duration_ns)

    def config_loaded(self) -> None:
        """Count a configuration that is in force now."""
        self._config_loads.add(("loaded",))
        self._is_config_refused = False

    def config_refused(self) -> None:
        """Count a configuration with a mistake."""
        self._config_loads.add(("refused",))
        self._is_config_refused = True

    def retain(self, plugins: Collection[str]) -> None:
        """Forget every plugin that is not among *plugins*."""
        for numbers in (self._failures, self._producer_failures):
            numbers.retain(lambda labels: labels[0] in plugins)
        for name in self._durations.keys() - plugins:
            del self._durations[name]
        for labels in [labels for labels in self._next_line_ns if labels[0] not in plugins]:
            del self._next_line_ns[labels]
            self._unlogged.pop(labels, None)

    def families(self) -> list[Family]:
        """Return a copy of all numbers."""
        spreads: dict[LabelValues, Spread] = {
            (name,): taken.spread() for name, taken in self._durations.items()
        }
        return [
            Family(catalog.PRODUCER_LATENCY, spreads=spreads),
            Family(catalog.PRODUCER_FAILURES, self._producer_failures.rows()),
            Family(catalog.PLUGIN_FAILURES, self._failures.rows()),
            Family(catalog.CONFIG_LOADS, self._config_loads.rows()),
            Family(catalog.CONFIG_REFUSED, {(): float(self._is_config_refused)}),
        ]


def _durations() -> Durations:
    return Durations(catalog.PRODUCER_LATENCY.buckets_seconds)
