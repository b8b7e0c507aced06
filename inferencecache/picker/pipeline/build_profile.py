"""From the entry of a profile to the profile."""

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Final

from inferencecache.errors import ConfigError
from inferencecache.picker.pipeline.config import ProfileEntry, ProfileStep
from inferencecache.picker.pipeline.hooks import Filter, Picker, Scorer
from inferencecache.picker.pipeline.parameters import nearest
from inferencecache.picker.pipeline.plugin import Instance, Named
from inferencecache.picker.pipeline.profile import Profile, WeightedScorer

DEFAULT_PICKER: Final = "max-score-picker"
_DEFAULT_WEIGHT: Final = 1.0


def build_profile(
    entry: ProfileEntry, instances: Mapping[str, Instance], where: str
) -> Profile | None:
    """Return the profile, or None if it names no picker.

    Args:
        entry: What the configuration says.
        instances: The plugins by name.
        where: Where it stands, for errors.

    Raises:
        ConfigError: It names something that cannot be part of a profile.
    """
    found = list(_resolved(entry, instances, where))
    pickers = [
        Named(each.name, each.plugin, each.needs)
        for each, _ in found
        if isinstance(each.plugin, Picker)
    ]
    if len(pickers) > 1:
        names = ", ".join(picker.name for picker in pickers)
        raise ConfigError(field=f"{where}.plugins", value=names, allowed="one picker")
    if not pickers:
        return None
    return Profile(
        name=entry.name,
        filters=tuple(
            Named(each.name, each.plugin, each.needs)
            for each, _ in found
            if isinstance(each.plugin, Filter)
        ),
        scorers=tuple(
            WeightedScorer(Named(each.name, each.plugin, each.needs), weight)
            for each, weight in found
            if isinstance(each.plugin, Scorer)
        ),
        picker=pickers[0],
    )


def _resolved(
    entry: ProfileEntry, instances: Mapping[str, Instance], where: str
) -> Iterator[tuple[Instance, float]]:
    """Yield the plugins of a profile with their weights."""
    names: set[str] = set()
    for place, step in enumerate(entry.steps):
        field = f"{where}.plugins[{place}]"
        instance = instances.get(step.plugin)
        if instance is None:
            allowed = nearest(step.plugin, dict(instances))
            raise ConfigError(field=f"{field}.pluginRef", value=step.plugin, allowed=allowed)
        if not isinstance(instance.plugin, (Filter, Scorer, Picker)):
            raise ConfigError(
                field=f"{field}.pluginRef", value=step.plugin, allowed="a filter, scorer or picker"
            )
        if step.plugin in names:
            allowed = "each plugin once in a profile"
            raise ConfigError(field=f"{field}.pluginRef", value=step.plugin, allowed=allowed)
        names.add(step.plugin)
        yield instance, _weight(step, instance, field)


def _weight(step: ProfileStep, instance: Instance, field: str) -> float:
    if step.weight is None:
        return _DEFAULT_WEIGHT
    if not isinstance(instance.plugin, Scorer):
        allowed = "no weight, since it is no scorer"
        raise ConfigError(field=f"{field}.weight", value=step.weight, allowed=allowed)
    if not (isfinite(step.weight) and step.weight >= 0):
        allowed = "a number that is not negative"
        raise ConfigError(field=f"{field}.weight", value=step.weight, allowed=allowed)
    return step.weight
