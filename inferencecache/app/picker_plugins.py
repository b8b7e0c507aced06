"""The picker's plugins: the file that names them, the packages that bring them, the director."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from itertools import count
from random import Random
from typing import Any, Final

from inferencecache.app.picker_config_source import PickerConfigSource
from inferencecache.clock import NS_PER_S, Clock
from inferencecache.errors import ConfigError
from inferencecache.picker.pipeline import (
    EMPTY_PIPELINE,
    Director,
    DirectorParts,
    IgnorePlugins,
    Pipeline,
)
from inferencecache.picker.pipeline.build import (
    DEFAULT_HANDLER,
    PipelineSources,
    build_pipeline,
)
from inferencecache.picker.pipeline.build_profile import DEFAULT_PICKER
from inferencecache.picker.pipeline.guard import PluginFailure, guarded
from inferencecache.picker.pipeline.registry import PluginRegistry, PluginServices, PluginType
from inferencecache.picker.plugins import BUILTIN_TYPES
from inferencecache.resources.endpoint_picker_config import EndpointPickerConfig
from inferencecache.service.picker_plugins import pipeline_config
from inferencecache.settings.picker_choice import PickerChoiceSettings
from inferencecache.settings.picker_plugins import PickerPluginSettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.transport.picker_plugin_watch import PluginWatch
from inferencecache.transport.picker_producers import ProducerTasks
from inferencecache.transport.structured_log import EventLog
from inferencecache.transport.system_clock import SystemClock

ENTRY_POINT_GROUP: Final = "inferencecache.picker_plugins"
"""Packages name their plugin types in this group."""

_Seen = EndpointPickerConfig | str | None
"""What one look has found: a configuration, what is wrong with it, or none."""


def no_plugins() -> Director:
    """Return a director without any plugin."""
    return Director(
        DirectorParts(
            pipeline=EMPTY_PIPELINE,
            runner=ProducerTasks(SystemClock(), running_max=1),
            observer=IgnorePlugins(),
            attributes_max=1,
            bytes_per_token=PickerChoiceSettings().bytes_per_token,
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
        choice: How long those prompts are believed to be whose tokens nobody counts.
    """

    settings: PickerPluginSettings
    resources: ResourceSettings
    clock: Clock
    log: EventLog
    log_interval_ns: int
    choice: PickerChoiceSettings = field(default_factory=PickerChoiceSettings)


class PickerPlugins:
    """The plugins of one server.

    A changed configuration comes into force as a whole, for Picks that begin after that; one with a
    mistake leaves the last good one in force. A change counts when two looks in a row have found
    the same, since half of a file may be a configuration, too.

    Args:
        parts: Its collaborators.

    Raises:
        ConfigError: The file cannot be read, or says something that cannot be.

    Attributes:
        director: Takes Picks through them.
        watch: Counts what they do.
        on_change: Told of each director after the first.
    """

    def __init__(self, parts: PickerPluginParts) -> None:
        self._parts = parts
        self.watch = PluginWatch(parts.log, parts.clock, parts.log_interval_ns)
        self.on_change: Callable[[Director], None] = _ignore
        self._runner = ProducerTasks(parts.clock, parts.settings.producers_max)
        self._source = PickerConfigSource(parts.settings.config_file, parts.resources, parts.clock)
        self._keys = count(1)
        self._config = self._source.read()
        self._seen: _Seen = self._config
        self._settled: _Seen = self._config
        self.director = self._director(self._config)

    async def run(self) -> None:
        """Follow the configuration for ever, or not at all."""
        interval_ns = self._parts.settings.check_interval_ns
        while interval_ns:
            await asyncio.sleep(interval_ns / NS_PER_S)
            await self.look()

    async def look(self) -> None:
        """Look at the configuration once, and put it into force if it has changed and settled."""
        try:
            seen: _Seen = await asyncio.to_thread(self._source.read)
        except ConfigError as error:
            seen = str(error)
        is_settled, self._seen = seen == self._seen, seen
        if is_settled and seen != self._settled:
            self._settled = seen
            self._take(seen)

    def _take(self, seen: _Seen) -> None:
        try:
            if isinstance(seen, str):
                self._refuse(seen)
            elif seen == self._config:
                self.watch.config_loaded()  # a mistake was undone; the plugins need not begin anew
            else:
                self._install(seen, self._director(seen))
        except ConfigError as error:
            self._refuse(str(error))

    def _install(self, config: EndpointPickerConfig | None, director: Director) -> None:
        self._config, self.director = config, director
        self.watch.config_loaded()
        self.watch.retain(_names_of(config))
        self._parts.log.info("picker_config_loaded", profiles=",".join(director.profile_names))
        self.on_change(director)

    def _refuse(self, reason: str) -> None:
        self.watch.config_refused()
        self._parts.log.error(
            "picker_config_refused",
            reason=reason,
            profiles_kept=",".join(self.director.profile_names),
        )

    def _director(self, config: EndpointPickerConfig | None) -> Director:
        return Director(
            DirectorParts(
                pipeline=_pipeline(config, self._parts),
                runner=self._runner,
                observer=self.watch,
                attributes_max=self._parts.settings.attributes_max,
                bytes_per_token=self._parts.choice.bytes_per_token,
                keys=self._keys,
            )
        )


def installed_registry() -> PluginRegistry:
    """Return the types that the product and the installed packages bring.

    Raises:
        ConfigError: Two of them have the same name.
    """
    return PluginRegistry(BUILTIN_TYPES, _loaders())


def _pipeline(config: EndpointPickerConfig | None, parts: PickerPluginParts) -> Pipeline:
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


def _names_of(config: EndpointPickerConfig | None) -> set[str]:
    """Return what the plugins of *config* are called, and those that it need not name."""
    plugins = () if config is None else config.plugins
    return {DEFAULT_PICKER, DEFAULT_HANDLER, *(plugin.name or plugin.type for plugin in plugins)}


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


def _ignore(_director: Director) -> None:
    """Stand in until somebody wants to know."""
