"""Plugins with their names: what the director keeps of a configuration."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

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
        return _keys(self.plugin, "consumes")

    @property
    def needs(self) -> frozenset[str]:
        """Their names."""
        return frozenset(key.name for key in self.consumes)

    @property
    def may_consume(self) -> Keys:
        """Keys it uses where they are there."""
        return _keys(self.plugin, "may_consume")

    @property
    def produces(self) -> Keys:
        """Keys that it writes."""
        return _keys(self.plugin, "produces")


def hooks_of(plugin: object) -> Sequence[type[Any]]:
    """Return the hooks that an object has."""
    return [hook for hook in HOOKS if isinstance(plugin, hook)]


def _keys(plugin: object, attribute: str) -> Keys:
    return tuple(getattr(plugin, attribute, ()))
