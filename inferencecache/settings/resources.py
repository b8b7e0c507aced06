"""Settings of the resource files: which directory, how closely watched, and what is too much."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob

_MIB = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSettings:
    """Where objects such as CachePolicy and InferenceProvider are read from."""

    directory: str = knob(
        "",
        flag="resources",
        kind=KnobKind.TEXT,
        help="Directory of YAML files with objects such as CachePolicy; empty for none.",
    )
    debounce_ns: int = knob(
        100 * NS_PER_MS,
        flag="resource-debounce",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        maximum=60 * NS_PER_S,
        help="Wait until the directory has been quiet for this long before reading it again.",
    )
    debounce_max_ns: int = knob(
        2 * NS_PER_S,
        flag="resource-debounce-max",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        maximum=600 * NS_PER_S,
        help="Read the directory after this long even if it is never quiet.",
    )
    name_check_interval_ns: int = knob(
        500 * NS_PER_MS,
        flag="resource-name-check-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=10 * NS_PER_MS,
        maximum=600 * NS_PER_S,
        help="Look this often whether the directory's name stands for another directory now.",
    )
    rescan_interval_ns: int = knob(
        10 * NS_PER_S,
        flag="resource-rescan-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=10 * NS_PER_MS,
        help="Look for changes this often without being told, as on a network file system.",
    )
    files_max: int = knob(
        20_000,
        flag="max-resource-files",
        kind=KnobKind.INTEGER,
        unit="files",
        minimum=1,
        help="Most resource files in the directory.",
    )
    file_bytes_max: int = knob(
        4 * _MIB,
        flag="max-resource-file-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1_024,
        maximum=64 * _MIB,
        help="Largest resource file; one value of this size holds the event loop for 40 ms.",
    )
    total_bytes_max: int = knob(
        64 * _MIB,
        flag="max-resource-total-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1_024,
        help="Most bytes in all resource files together.",
    )
    depth_max: int = knob(
        64,
        flag="max-resource-depth",
        kind=KnobKind.INTEGER,
        unit="levels",
        minimum=8,
        maximum=256,
        help="Deepest nesting of a resource file.",
    )
    nodes_max: int = knob(
        2_000_000,
        flag="max-resource-nodes",
        kind=KnobKind.INTEGER,
        unit="nodes",
        minimum=100,
        help="Most YAML nodes in a resource file, counting an alias as all that it stands for.",
    )
    errors_max: int = knob(
        1_000,
        flag="max-resource-errors",
        kind=KnobKind.INTEGER,
        unit="errors",
        minimum=1,
        help="Most errors of resource files that are kept and shown; the rest is only counted.",
    )
    errors_logged_max: int = knob(
        50,
        flag="max-resource-errors-logged",
        kind=KnobKind.INTEGER,
        unit="lines",
        minimum=0,
        help="Most new errors that one reload writes to the log.",
    )
    objects_shown_max: int = knob(
        1_000,
        flag="max-resource-objects-shown",
        kind=KnobKind.INTEGER,
        unit="objects",
        minimum=0,
        help="Most objects that the debug page lists; the rest is only counted.",
    )
