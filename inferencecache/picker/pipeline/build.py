"""From a configuration to a pipeline, with everything checked that can be checked at start.

What is added where it is missing: a producer for a key that some plugin needs, as the registry
knows it; a profile named ``default`` with all filters, scorers and pickers, if there are any;
``max-score-picker`` for a profile without a picker; ``single-profile-handler``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from inferencecache.errors import ConfigError
from inferencecache.picker.pipeline.build_profile import DEFAULT_PICKER, build_profile
from inferencecache.picker.pipeline.config import (
    PipelineConfig,
    PluginEntry,
    ProfileEntry,
    ProfileStep,
)
from inferencecache.picker.pipeline.guard import PluginFailure, guarded
from inferencecache.picker.pipeline.hooks import (
    Admitter,
    Filter,
    Picker,
    PreAdmitter,
    PreRequest,
    ProfileHandler,
    ResponseBodyProcessor,
    ResponseHeaderProcessor,
    Scorer,
)
from inferencecache.picker.pipeline.parameters import read_parameters
from inferencecache.picker.pipeline.pipeline import Pipeline
from inferencecache.picker.pipeline.plugin import Instance, Named, check_hooks, hooks_of
from inferencecache.picker.pipeline.producer_plan import check_keys, missing_keys, plan_producers
from inferencecache.picker.pipeline.profile import Profile
from inferencecache.picker.pipeline.registry import (
    NAME_FORM,
    PluginRegistry,
    PluginServices,
    is_name,
)
from inferencecache.settings.picker_plugins import PickerPluginSettings

DEFAULT_PROFILE: Final = "default"
DEFAULT_HANDLER: Final = "single-profile-handler"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSources:
    """What plugins are made from.

    Attributes:
        registry: The types there are.
        services: What plugins may use.
        settings: Limits.
    """

    registry: PluginRegistry
    services: PluginServices
    settings: PickerPluginSettings


def build_pipeline(config: PipelineConfig, sources: PipelineSources) -> Pipeline:
    """Return the pipeline that *config* describes.

    Raises:
        ConfigError: It describes none; says which value is wrong, and what would be right.
    """
    instances = _instances(config.plugins, sources)
    _add_missing(instances, sources)
    _check_count(len(instances), sources.settings.plugins_max, "plugins")
    _check_count(len(config.profiles), sources.settings.plugins_max, "schedulingProfiles")
    profiles = _profiles(config.profiles, instances, sources)
    found = list(instances.values())
    check_keys(found)
    producers = plan_producers(found, sources.settings.producer_timeout_ns)
    keys = sum(len(step.produces) for step in producers)
    _check_count(keys, sources.settings.attributes_max, "keys that plugins produce")
    return Pipeline(
        pre_admitters=tuple(
            Named(each.name, each.plugin, each.needs)
            for each in found
            if isinstance(each.plugin, PreAdmitter)
        ),
        producers=producers,
        admitters=tuple(
            Named(each.name, each.plugin, each.needs)
            for each in found
            if isinstance(each.plugin, Admitter)
        ),
        profiles=profiles,
        profile_handler=next(iter(_handlers(found)), None),
        pre_requests=tuple(
            Named(each.name, each.plugin, each.needs)
            for each in found
            if isinstance(each.plugin, PreRequest)
        ),
        header_processors=tuple(
            Named(each.name, each.plugin, each.needs)
            for each in found
            if isinstance(each.plugin, ResponseHeaderProcessor)
        ),
        body_processors=tuple(
            Named(each.name, each.plugin, each.needs)
            for each in found
            if isinstance(each.plugin, ResponseBodyProcessor)
        ),
    )


def _instances(entries: Sequence[PluginEntry], sources: PipelineSources) -> dict[str, Instance]:
    _check_count(len(entries), sources.settings.plugins_max, "plugins")
    instances: dict[str, Instance] = {}
    for place, entry in enumerate(entries):
        where = f"plugins[{place}]"
        if not is_name(entry.reference):
            raise ConfigError(field=f"{where}.name", value=entry.reference, allowed=NAME_FORM)
        if entry.reference in instances:
            allowed = "a name that no other plugin has"
            raise ConfigError(field=f"{where}.name", value=entry.reference, allowed=allowed)
        instances[entry.reference] = _made(entry, where, sources)
    handlers = _handlers(instances.values())
    if len(handlers) > 1:
        raise ConfigError(
            field="plugins",
            value=", ".join(handler.name for handler in handlers),
            allowed="one profile handler",
        )
    return instances


def _handlers(instances: Iterable[Instance]) -> list[Named[ProfileHandler]]:
    return [
        Named(each.name, each.plugin, each.needs)
        for each in instances
        if isinstance(each.plugin, ProfileHandler)
    ]


def _made(entry: PluginEntry, where: str, sources: PipelineSources) -> Instance:
    found = sources.registry.find(entry.type, f"{where}.type")
    parameters = read_parameters(entry.parameters, found.parameters, f"{where}.parameters")
    plugin = guarded(found.make, parameters, sources.services)
    if isinstance(plugin, PluginFailure):
        error = plugin.error
        what = str(error) if isinstance(error, ValueError) else f"no {type(error).__name__}"
        # Values may be secrets, so the error names the parameters alone.
        raise ConfigError(
            field=f"{where}.parameters", value=sorted(entry.parameters), allowed=what
        ) from error
    if not hooks_of(plugin):
        raise ConfigError(
            field=f"{where}.type", value=entry.type, allowed="a type whose plugins have a hook"
        )
    instance = Instance(name=entry.reference, type=entry.type, plugin=plugin)
    check_hooks(instance)
    return instance


def _add_missing(instances: dict[str, Instance], sources: PipelineSources) -> None:
    """Add the producers, and the handler, that the configuration leaves to us."""
    left_over: set[str] = set()
    while missing := missing_keys(list(instances.values())).keys() - left_over:
        key = min(missing)
        left_over.add(key)
        found = sources.registry.default_for(key)
        if found is not None and found.name not in instances:
            instances[found.name] = _made(PluginEntry(type=found.name), found.name, sources)
    if not _handlers(instances.values()):
        _add_default(DEFAULT_HANDLER, instances, sources)


def _add_default(name: str, instances: dict[str, Instance], sources: PipelineSources) -> None:
    if name not in instances:
        instances[name] = _made(PluginEntry(type=name), name, sources)


def _profiles(
    entries: Sequence[ProfileEntry], instances: dict[str, Instance], sources: PipelineSources
) -> Mapping[str, Profile]:
    profiles: dict[str, Profile] = {}
    for place, entry in enumerate(entries or _profiles_of_all(instances)):
        where = f"schedulingProfiles[{place}]"
        if not is_name(entry.name):
            raise ConfigError(field=f"{where}.name", value=entry.name, allowed=NAME_FORM)
        if entry.name in profiles:
            allowed = "a name that no other profile has"
            raise ConfigError(field=f"{where}.name", value=entry.name, allowed=allowed)
        profile = build_profile(entry, instances, where)
        if profile is None:
            _add_default(DEFAULT_PICKER, instances, sources)
            step = ProfileStep(plugin=DEFAULT_PICKER)
            with_picker = ProfileEntry(name=entry.name, steps=(*entry.steps, step))
            profile = build_profile(with_picker, instances, where)
        if profile is None:
            allowed = f"a picker, since {DEFAULT_PICKER} is the name of another plugin"
            raise ConfigError(field=f"{where}.plugins", value="no picker", allowed=allowed)
        profiles[entry.name] = profile
    return MappingProxyType(profiles)


def _profiles_of_all(instances: Mapping[str, Instance]) -> list[ProfileEntry]:
    """Return one profile of all plugins that can be part of one; none if there is no such plugin.

    A file that only brings other plugins leaves the order of endpoints as it is without it.
    """
    names = [
        found.name
        for found in instances.values()
        if isinstance(found.plugin, (Filter, Scorer, Picker))
    ]
    steps = tuple(ProfileStep(plugin=name) for name in names)
    return [ProfileEntry(name=DEFAULT_PROFILE, steps=steps)] if steps else []


def _check_count(count: int, count_max: int, field: str) -> None:
    if count > count_max:
        raise ConfigError(field=field, value=count, allowed=f"at most {count_max}")
