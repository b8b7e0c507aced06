"""Where each setting's value comes from: flag before environment before file before default."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TypeVar

from inferencecache.errors import ConfigError
from inferencecache.settings.file import SettingsFile
from inferencecache.settings.knob import Knob, knobs_of
from inferencecache.settings.value import allowed, read_text, read_typed

SettingsT = TypeVar("SettingsT")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What people gave, before it is read.

    Attributes:
        flags: Flag without dashes -> text; None or absent means not given.
        environ: The process environment; an empty variable counts as not given.
        file: The settings file, or None.
    """

    flags: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    environ: Mapping[str, str] = dataclasses.field(default_factory=dict)
    file: SettingsFile | None = None


def groups_of(settings_class: type) -> Iterator[tuple[str, type]]:
    """Yield attribute name and class of each group of settings in *settings_class*."""
    for field in dataclasses.fields(settings_class):
        if isinstance(field.default_factory, type):
            yield field.name, field.default_factory


def load_settings(settings_class: type[SettingsT], sources: Sources) -> SettingsT:
    """Build *settings_class*, a dataclass of groups, from *sources*.

    Raises:
        ConfigError: A value is wrong, or a file key is unknown.
    """
    known = {knob.flag for _, group in groups_of(settings_class) for knob in knobs_of(group)}
    _check_file_keys(sources.file, known)
    groups = {
        name: group(**{knob.name: _value_of(knob, sources) for knob in knobs_of(group)})
        for name, group in groups_of(settings_class)
    }
    return settings_class(**groups)


def _value_of(knob: Knob, sources: Sources) -> object:
    """Return the value from the first source that gives one."""
    text = sources.flags.get(knob.flag)
    if text is not None:
        return _read(knob, text, "flag")
    if sources.environ.get(knob.env):
        return _read(knob, sources.environ[knob.env], "environment")
    if sources.file is not None and knob.flag in sources.file.values:
        value = sources.file.values[knob.flag]
        try:
            return read_typed(knob, value)
        except ValueError as error:
            source = f"file {sources.file.name}"
            raise ConfigError(
                field=knob.flag, value=value, allowed=str(error), source=source
            ) from error
    return knob.default


def _read(knob: Knob, text: str, source: str) -> object:
    try:
        return read_text(knob, text)
    except ValueError as error:
        field = f"--{knob.flag}" if source == "flag" else knob.env
        raise ConfigError(field=field, value=text, allowed=allowed(knob), source=source) from error


def _check_file_keys(file: SettingsFile | None, known: set[str]) -> None:
    if file is None:
        return
    for key in file.values:
        if key not in known:
            raise ConfigError(
                field=key,
                value=file.values[key],
                allowed="one of the keys " + ", ".join(sorted(known)),
                source=f"file {file.name}",
            )
