"""The file of ``--sources``: a YAML list of engines, each a mapping of flags to values.

::

    - engine-endpoint: tcp://10.0.0.7:5557
      replica-id: pod-7
      lora-adapter-names: 1=sql-lora
    - engine-endpoint: tcp://10.0.0.8:5557
      replica-id: pod-8

What an entry leaves out is taken from the command line, the environment and ``--config``.
"""

import dataclasses
from pathlib import Path
from typing import Final

from inferencecache.errors import ConfigError
from inferencecache.settings.file import SettingsFile, read_settings_list
from inferencecache.settings.knob import Knob, knobs_of
from inferencecache.settings.loader import groups_of
from inferencecache.settings.subscribe import SourceSettings
from inferencecache.settings.value import read_typed

SOURCES_FLAG: Final = "sources"

_OWN: Final = {
    knob.flag: (group, knob)
    for group, found in groups_of(SourceSettings)
    for knob in knobs_of(found)
}


def read_sources(path: Path, default: SourceSettings) -> tuple[SourceSettings, ...]:
    """Return the engines listed in the file at *path*.

    Args:
        path: The file.
        default: What an entry leaves out.

    Raises:
        ConfigError: The file cannot be read, or an entry is wrong.
    """
    return tuple(_source(entry, default) for entry in read_settings_list(path, SOURCES_FLAG))


def _source(entry: SettingsFile, default: SourceSettings) -> SourceSettings:
    groups: dict[str, dict[str, object]] = {}
    for key, value in entry.values.items():
        if key not in _OWN:
            allowed = "one of the keys " + ", ".join(sorted(_OWN))
            raise ConfigError(field=key, value=value, allowed=allowed, source=entry.name)
        group, knob = _OWN[key]
        groups.setdefault(group, {})[knob.name] = _value(knob, value, entry.name)
    changed = {
        group: dataclasses.replace(getattr(default, group), **values)
        for group, values in groups.items()
    }
    return dataclasses.replace(default, **changed)


def _value(knob: Knob, value: object, source: str) -> object:
    try:
        return read_typed(knob, value)
    except ValueError as error:
        raise ConfigError(
            field=knob.flag, value=value, allowed=str(error), source=source
        ) from error
