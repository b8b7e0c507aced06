"""A configuration of plugins, wherever it was written down."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginEntry:
    """One plugin.

    Attributes:
        type: Under which it is registered.
        name: Unique; empty takes the type's.
        parameters: As the type takes them.
    """

    type: str
    name: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """What profiles call it."""
        return self.name or self.type


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileStep:
    """One plugin of a profile.

    Attributes:
        plugin: Its name.
        weight: Of a scorer; None takes 1.
    """

    plugin: str
    weight: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileEntry:
    """One scheduling profile.

    Attributes:
        name: Unique.
        steps: Its plugins; filters and scorers in order.
    """

    name: str
    steps: tuple[ProfileStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineConfig:
    """Everything.

    Attributes:
        plugins: In order.
        profiles: None of them stands for one that has all plugins.
    """

    plugins: tuple[PluginEntry, ...] = ()
    profiles: tuple[ProfileEntry, ...] = ()
