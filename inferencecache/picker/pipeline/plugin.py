"""Plugins with their names: what the director keeps of a configuration."""

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Generic, TypeVar

from inferencecache.errors import ConfigError
from inferencecache.picker.pipeline.attributes import AttributeKey
from inferencecache.picker.pipeline.hooks import (
    Admitter,
    DataProducer,
    Filter,
    Keys,
    Picker,
    PreAdmitter,
    PreRequest,
    ProfileHandler,
    ResponseBodyProcessor,
    ResponseHeaderProcessor,
    Scorer,
)

HookT = TypeVar("HookT")

HOOKS: tuple[type[Any], ...] = (
    PreAdmitter,
    DataProducer,
    Admitter,
    Filter,
    Scorer,
    Picker,
    ProfileHandler,
    PreRequest,
    ResponseHeaderProcessor,
    ResponseBodyProcessor,
)
"""All of them; an object that has none is no plugin."""


@dataclass(frozen=True, slots=True)
class Named(Generic[HookT]):
    """A plugin under one of its hooks.

    Attributes:
        name: In the configuration.
        plugin: The instance.
        needs: Names of the keys it cannot work without.
    """

    name: str
    plugin: HookT
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One plugin of a configuration, whatever its hooks.

    Attributes:
        name: Unique among them.
        type: Under which it is registered.
        plugin: The object.
    """

    name: str
    type: str
    plugin: object

    @property
    def consumes(self) -> Keys:
        """Keys it cannot work without."""
        return _keys(self, "consumes")

    @property
    def needs(self) -> frozenset[str]:
        """Their names."""
        return frozenset(key.name for key in self.consumes)

    @property
    def may_consume(self) -> Keys:
        """Keys it uses where they are there."""
        return _keys(self, "may_consume")

    @property
    def produces(self) -> Keys:
        """Keys that it writes."""
        return _keys(self, "produces")


def hooks_of(plugin: object) -> Sequence[type[Any]]:
    """Return the hooks that an object has."""
    return [hook for hook in HOOKS if isinstance(plugin, hook)]


def check_hooks(instance: Instance) -> None:
    """See that no hook waits that must not: nobody would notice that it never ran.

    Raises:
        ConfigError: One does.
    """
    for hook in hooks_of(instance.plugin):
        for name in vars(hook):
            method = getattr(instance.plugin, name, None)
            if name != "produce" and not name.startswith("_") and iscoroutinefunction(method):
                raise ConfigError(
                    field=f"plugins.{instance.name}",
                    value=f"async def {name}",
                    allowed=f"def {name}: only produce may wait",
                )


def _keys(instance: Instance, attribute: str) -> Keys:
    keys = getattr(instance.plugin, attribute, ())
    if not isinstance(keys, (tuple, list)) or not all(isinstance(k, AttributeKey) for k in keys):
        raise ConfigError(
            field=f"plugins.{instance.name}.{attribute}",
            value=keys,
            allowed="AttributeKeys in a tuple",
        )
    return tuple(keys)
