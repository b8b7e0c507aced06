"""Settings of the picker's plugins."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerPluginSettings:
    """Which plugins the picker runs, and how much they may use."""

    config_file: str = knob(
        "",
        flag="picker-config",
        kind=KnobKind.TEXT,
        help="EndpointPickerConfig file with the picker's plugins; else it may be a resource file.",
    )
    check_interval_ns: int = knob(
        2 * NS_PER_S,
        flag="picker-config-check-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Pause between two looks at that configuration; a change that two looks in a row have "
        "found comes into force. 0 reads it at the start only.",
    )
    plugins_max: int = knob(
        64,
        flag="picker-max-plugins",
        kind=KnobKind.INTEGER,
        unit="plugins",
        minimum=1,
        maximum=1_024,
        help="Most plugins, and most scheduling profiles, of the file.",
    )
    attributes_max: int = knob(
        64,
        flag="picker-max-attributes",
        kind=KnobKind.INTEGER,
        unit="attributes",
        minimum=1,
        help="Most values that plugins may attach to a request, and to each of its endpoints.",
    )
    producer_timeout_ns: int = knob(
        400 * NS_PER_MS,
        flag="picker-producer-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long a Pick waits for each data producer that names no limit of its own.",
    )
    producers_max: int = knob(
        1_000,
        flag="picker-max-running-producers",
        kind=KnobKind.INTEGER,
        unit="calls",
        minimum=1,
        help="Most calls of data producers at a time; those beyond fail at once.",
    )
