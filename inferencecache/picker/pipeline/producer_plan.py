"""In which order producers run; worked out once, at start.

Theory of operation: a producer comes behind those whose keys it consumes, required or not. Among
producers that are free to run, those named first in the configuration come first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from inferencecache.errors import ConfigError
from inferencecache.picker.pipeline.attributes import AttributeKey
from inferencecache.picker.pipeline.guard import PluginFailure, guarded
from inferencecache.picker.pipeline.hooks import (
    DataProducer,
    ImmediateProducer,
    TimeoutAwareProducer,
)
from inferencecache.picker.pipeline.keys import GIVEN_KEYS
from inferencecache.picker.pipeline.plugin import Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerStep:
    """One producer.

    Attributes:
        index: Its place in the order.
        name: In the configuration.
        plugin: The instance.
        immediate: The same, if it never waits.
        timeout_ns: How long it may take.
        produces: Its keys by name.
        needs: Names of the keys it cannot work without, of those that producers make.
        after: Places of the producers that come before it.
    """

    index: int
    name: str
    plugin: DataProducer
    immediate: ImmediateProducer | None
    timeout_ns: int
    produces: dict[str, AttributeKey[Any]]
    needs: frozenset[str]
    after: frozenset[int]


def check_keys(instances: Sequence[Instance]) -> None:
    """See that every key has one type, one producer, and whoever needs it one that makes it.

    Raises:
        ConfigError: It is not so; names the plugins.
    """
    known: dict[str, tuple[AttributeKey[Any], Instance]] = {}
    makers: dict[str, Instance] = {}
    for instance in instances:
        for key in (*instance.produces, *instance.consumes, *instance.may_consume):
            first, where = known.setdefault(key.name, (key, instance))
            if first.kind is not key.kind:
                raise ConfigError(
                    field=f"plugins.{instance.name}",
                    value=f"{key.name} as {key.kind.__name__}",
                    allowed=f"{first.kind.__name__}, as {where.name} has it",
                )
        for key in instance.produces:
            other = makers.setdefault(key.name, instance)
            if other is not instance:
                raise ConfigError(
                    field=f"plugins.{instance.name}",
                    value=key.name,
                    allowed=f"a key that {other.name} does not produce as well",
                )
    _check_needs(instances, makers)


def missing_keys(instances: Sequence[Instance]) -> dict[str, str]:
    """Return the required keys that nobody knows, each with the first plugin that needs it."""
    made = {key.name for instance in instances for key in instance.produces} | GIVEN_KEYS
    missing: dict[str, str] = {}
    for instance in instances:
        for key in instance.consumes:
            if key.name not in made:
                missing.setdefault(key.name, instance.name)
    return missing


def plan_producers(
    instances: Sequence[Instance], default_timeout_ns: int
) -> tuple[ProducerStep, ...]:
    """Return the producers among *instances* in the order in which they run.

    Raises:
        ConfigError: They go round in a circle; names them.
    """
    producers = [found for found in instances if isinstance(found.plugin, DataProducer)]
    maker_of = {key.name: found.name for found in producers for key in found.produces}
    waiting = {
        found.name: {
            maker_of[key.name]
            for key in (*found.consumes, *found.may_consume)
            if key.name in maker_of
        }
        for found in producers
    }
    before = {name: set(names) for name, names in waiting.items()}
    by_name = {found.name: found for found in producers}
    places: dict[str, int] = {}
    steps: list[ProducerStep] = []
    while waiting:
        free = next((name for name, names in waiting.items() if not names), None)
        if free is None:
            raise _circle(waiting)
        del waiting[free]
        for names in waiting.values():
            names.discard(free)
        places[free] = len(steps)
        after = frozenset(places[name] for name in before[free])
        step = _step(by_name[free], GIVEN_KEYS.union(maker_of), default_timeout_ns)
        steps.append(replace(step, index=len(steps), after=after))
    return tuple(steps)


def _check_needs(instances: Sequence[Instance], makers: dict[str, Instance]) -> None:
    for key, name in missing_keys(instances).items():
        raise ConfigError(
            field=f"plugins.{name}",
            value=key,
            allowed="a key that some plugin produces: " + (", ".join(sorted(makers)) or "none"),
        )


def _step(instance: Instance, made: frozenset[str], default_timeout_ns: int) -> ProducerStep:
    plugin = instance.plugin
    assert isinstance(plugin, DataProducer)  # noqa: S101 - chosen by that
    timeout_ns = _own_timeout_ns(instance.name, plugin)
    return ProducerStep(
        index=0,
        name=instance.name,
        plugin=plugin,
        immediate=plugin if isinstance(plugin, ImmediateProducer) else None,
        timeout_ns=timeout_ns if timeout_ns > 0 else default_timeout_ns,
        produces={key.name: key for key in instance.produces},
        needs=frozenset(key.name for key in instance.consumes) & made,
        after=frozenset(),
    )


def _own_timeout_ns(name: str, plugin: DataProducer) -> int:
    """Return the limit that a producer names, 0 if it names none."""
    if not isinstance(plugin, TimeoutAwareProducer):
        return 0
    timeout_ns = guarded(plugin.produce_timeout_ns)
    if isinstance(timeout_ns, PluginFailure) or not isinstance(timeout_ns, int):
        raise ConfigError(
            field=f"plugins.{name}.produce_timeout_ns", value=timeout_ns, allowed="nanoseconds"
        )
    return timeout_ns


def _circle(waiting: dict[str, set[str]]) -> ConfigError:
    """Return an error that names the plugins of one circle, in its order."""
    path = [min(waiting)]
    while True:
        following = min(waiting[path[-1]])
        if following in path:
            names = [*path[path.index(following) :], following]
            return ConfigError(
                field="plugins",
                value=" needs ".join(names),
                allowed="producers that do not need each other in a circle",
            )
        path.append(following)
