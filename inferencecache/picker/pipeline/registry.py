"""Which types of plugins there are."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic

from inferencecache.clock import Clock
from inferencecache.errors import ConfigError
from inferencecache.picker.pipeline.hooks import Keys
from inferencecache.picker.pipeline.parameters import ParametersT, nearest

NAME_FORM: Final = "letters, digits, and - _ . / between them, at most 128"
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]{0,126}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginServices:
    """What plugins may use of the picker.

    Attributes:
        clock: The time; a plugin that reads no other clock can be tested without waiting.
        draw: Returns a random number from 0 up to and without 1.
    """

    clock: Clock
    draw: Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginType(Generic[ParametersT]):
    """A type of plugins, as configurations name it.

    Attributes:
        name: Under which it is known.
        parameters: Model of its parameters.
        make: Returns a plugin: an object with at least one of the hooks.
        default_for: Keys for which a plugin of this type is added, without parameters, where some
            plugin needs them and none produces them.
    """

    name: str
    parameters: type[ParametersT]
    make: Callable[[ParametersT, PluginServices], object]
    default_for: Keys = ()


LoadType = Callable[[], PluginType[Any]]
"""Loads a type; raises ConfigError if that cannot be done."""


class PluginRegistry:
    """The types that configurations may name.

    Args:
        types: Each name once.
        loaders: Types that are there and not loaded yet, by name; one is loaded when a
            configuration names it.

    Raises:
        ConfigError: See :meth:`add`.
    """

    __slots__ = ("_loaders", "_types")

    def __init__(
        self, types: Iterable[PluginType[Any]] = (), loaders: Mapping[str, LoadType] | None = None
    ) -> None:
        self._types: dict[str, PluginType[Any]] = {}
        self._loaders = dict(loaders or {})
        for added in types:
            self.add(added)

    def __iter__(self) -> Iterator[PluginType[Any]]:
        """Yield the types by name."""
        return iter([self._types[name] for name in sorted(self._types)])

    def add(self, added: PluginType[Any]) -> None:
        """Add a type.

        Raises:
            ConfigError: Its name is taken or has another form.
        """
        if not is_name(added.name):
            raise ConfigError(field="plugin type", value=added.name, allowed=NAME_FORM)
        if added.name in self._types or added.name in self._loaders:
            raise ConfigError(field="plugin type", value=added.name, allowed="a name not taken")
        self._types[added.name] = added

    def find(self, name: str, field: str) -> PluginType[Any]:
        """Return a type by its name.

        Args:
            name: As the configuration has it.
            field: Where it stands, for errors.

        Raises:
            ConfigError: There is none, and says which is nearest; or it cannot be loaded.
        """
        if name in self._loaders:
            self.add(self._loaders.pop(name)())
        found = self._types.get(name)
        if found is None:
            known = [*self._types, *self._loaders]
            raise ConfigError(field=field, value=name, allowed=nearest(name, known))
        return found

    def default_for(self, key: str) -> PluginType[Any] | None:
        """Return the type that produces *key* where nobody else does, None if there is none."""
        return next(
            (found for found in self if any(made.name == key for made in found.default_for)), None
        )


def is_name(text: str) -> bool:
    """Return whether *text* can name a plugin, a type or a profile."""
    return _NAME.fullmatch(text) is not None
