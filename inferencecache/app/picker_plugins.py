"""The picker's plugins: the file that names them, the packages that bring them, the director."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from random import Random
from typing import Any, Final

from inferencecache.clock import Clock
from inferencecache.errors import ConfigError
from inferencecache.picker.pipeline import (
    EMPTY_PIPELINE,
    Director,
    DirectorParts,
    IgnorePlugins,
    Pipeline,
)
from inferencecache.picker.pipeline.build import PipelineSources, build_pipeline
from inferencecache.picker.pipeline.guard import PluginFailure, guarded
from inferencecache.picker.pipeline.registry import PluginRegistry, PluginServices, PluginType
from inferencecache.picker.plugins import BUILTIN_TYPES
from inferencecache.resources.endpoint_picker_config import (
    EndpointPickerConfig,
    find_endpoint_picker_config,
    read_endpoint_picker_config,
)
from inferencecache.service.picker_plugins import pipeline_config
from inferencecache.settings.picker_plugins import PickerPluginSettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.transport.picker_plugin_watch import PluginWatch
from inferencecache.transport.picker_producers import ProducerTasks
from inferencecache.transport.resource_files import DirectoryError, ResourceFiles
from inferencecache.transport.structured_log import EventLog
from inferencecache.transport.system_clock import SystemClock

ENTRY_POINT_GROUP: Final = "inferencecache.picker_plugins"
"""Packages name their plugin types in this group."""


def no_plugins() -> Director:
    """Return a director without any plugin."""
    return Director(
        DirectorParts(
            pipeline=EMPTY_PIPELINE,
            runner=ProducerTasks(SystemClock(), running_max=1),
            observer=IgnorePlugins(),
            attributes_max=1,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerPluginParts:
    """What plugins are loaded with.

    Attributes:
        settings: Which file names them, and limits.
        resources: Where it may stand otherwise, and limits of files.
        clock: The time.
        log: Told of what has no effect, and of failures.
        log_interval_ns: Shortest time between two lines about the same failure.
    """

    settings: PickerPluginSettings
    resources: ResourceSettings
    clock: Clock
    log: EventLog
    log_interval_ns: int


class PickerPlugins:
    """The plugins of one server.

    Args:
        parts: Its collaborators.

    Raises:
        ConfigError: The file cannot be read, or says something that cannot be.

    Attributes:
        director: Takes Picks through them.
        watch: Counts what they do.
    """

    def __init__(self, parts: PickerPluginParts) -> None:
        self.watch = PluginWatch(parts.log, parts.clock, parts.log_interval_ns)
        self.director = Director(
            DirectorParts(
                pipeline=_pipeline(parts),
                runner=ProducerTasks(parts.clock, parts.settings.producers_max),
                observer=self.watch,
                attributes_max=parts.settings.attributes_max,
            )
        )


def installed_registry() -> PluginRegistry:
    """Return the types that the product and the installed packages bring.

    Raises:
        ConfigError: Two of them have the same name.
    """
    return PluginRegistry(BUILTIN_TYPES, _loaders())


def _pipeline(parts: PickerPluginParts) -> Pipeline:
    config = _config(parts)
    if config is None:
        return EMPTY_PIPELINE
    for section in config.unsupported:
        parts.log.warning("picker_config_section_without_effect", section=section)
    sources = PipelineSources(
        registry=installed_registry(),
        services=PluginServices(clock=parts.clock, draw=Random().random),  # noqa: S311 - breaks ties, keeps no secret
        settings=parts.settings,
    )
    return build_pipeline(pipeline_config(config), sources)


def _config(parts: PickerPluginParts) -> EndpointPickerConfig | None:
    """Return the configuration of the file of its own or, without one, of the resource files."""
    file = parts.settings.config_file
    if file:
        return read_endpoint_picker_config(_content(file), file, parts.resources)
    if not parts.resources.directory:
        return None
    try:
        files = ResourceFiles(parts.resources, parts.clock).read()
    except DirectoryError:  # whoever loads the objects in it says so
        return None
    return find_endpoint_picker_config(files, parts.resources)


def _content(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(
            field="picker-config", value=file, allowed=f"a file that can be read: {error.strerror}"
        ) from error


def _loaders() -> Mapping[str, Callable[[], PluginType[Any]]]:
    loaders: dict[str, Callable[[], PluginType[Any]]] = {}
    taken = {builtin.name for builtin in BUILTIN_TYPES}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        if entry.name in taken:
            raise ConfigError(field=ENTRY_POINT_GROUP, value=entry.name, allowed="a name not taken")
        taken.add(entry.name)
        loaders[entry.name] = partial(_load, entry)
    return loaders


def _load(entry: EntryPoint) -> PluginType[Any]:
    """Return what an entry point names."""
    loaded = guarded(entry.load)
    if isinstance(loaded, PluginFailure):
        raise ConfigError(
            field=ENTRY_POINT_GROUP,
            value=entry.value,
            allowed=f"something that can be imported: {loaded.error}",
        ) from loaded.error
    if not isinstance(loaded, PluginType) or loaded.name != entry.name:
        raise ConfigError(
            field=ENTRY_POINT_GROUP,
            value=entry.value,
            allowed=f"a PluginType with the name {entry.name}",
        )
    return loaded
