"""The settings file: one flat YAML mapping whose keys are the flags without their dashes."""

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from inferencecache.errors import ConfigError

_SIZE_MAX_BYTES: Final = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """A settings file as it was read.

    Attributes:
        name: The path it was read from.
        values: Key -> value, typed by YAML.
    """

    name: str
    values: Mapping[str, object]


_ODD_NUMBER: Final = re.compile(r"[-+]?0[\dxob]|.*[_:]", re.ASCII)


class _PlainLoader(yaml.SafeLoader):
    """Takes what means one thing only.

    A mapping that gives one key twice is refused, of which YAML would keep the last; so are numbers
    that people read otherwise than YAML 1.1 does: 010 is 8 to it, and 1:30 is 90.
    """

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        _require_plain(node)
        return super().construct_yaml_int(node)

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        _require_plain(node)
        return super().construct_yaml_float(node)

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 - PyYAML's signature
    ) -> dict[Hashable, object]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise _DuplicateKeyError(str(key), key_node.start_mark.line + 1)
            if isinstance(key, Hashable):
                seen.add(key)
        return super().construct_mapping(node, deep)


_PlainLoader.add_constructor("tag:yaml.org,2002:int", _PlainLoader.construct_yaml_int)
_PlainLoader.add_constructor("tag:yaml.org,2002:float", _PlainLoader.construct_yaml_float)


def _require_plain(node: yaml.ScalarNode) -> None:
    """Refuse a number that is not written as people write it."""
    if _ODD_NUMBER.match(node.value):
        raise _OddNumberError(node.value, node.start_mark.line + 1)


class _OddNumberError(Exception):
    def __init__(self, text: str, line: int) -> None:
        super().__init__(text, line)
        self.text = text
        self.line = line


class _DuplicateKeyError(Exception):
    def __init__(self, key: str, line: int) -> None:
        super().__init__(key, line)
        self.key = key
        self.line = line


def read_settings_file(path: Path) -> SettingsFile:
    """Read the settings file at *path*.

    Raises:
        ConfigError: The file cannot be read, is no YAML mapping of texts, or repeats a key.
    """
    source = f"file {path}"
    document = _parse(_read(path, source), source)
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise ConfigError(
            field=str(path),
            value=type(document).__name__,
            allowed="a mapping of settings",
            source=source,
        )
    for key in document:
        if not isinstance(key, str):
            raise ConfigError(
                field=str(key), value=key, allowed="keys that are texts", source=source
            )
    return SettingsFile(name=str(path), values=document)


def read_settings_list(path: Path, flag: str) -> list[SettingsFile]:
    """Read a YAML list of flat mappings at *path*; each is named after its place in the list.

    Args:
        path: The file.
        flag: The setting that names it, for errors, without dashes.

    Raises:
        ConfigError: The file cannot be read, is no list of mappings of texts, or repeats a key.
    """
    source = f"file {path}"
    document = _parse(_read(path, source, f"--{flag}"), source, f"--{flag}")
    if not isinstance(document, list) or not document:
        raise ConfigError(
            field=str(path), value=document, allowed="a list of mappings", source=source
        )
    return [_entry(path, number, entry) for number, entry in enumerate(document, 1)]


def _entry(path: Path, number: int, entry: object) -> SettingsFile:
    name = f"{path}, entry {number}"
    if not isinstance(entry, dict) or not all(isinstance(key, str) for key in entry):
        raise ConfigError(field=name, value=entry, allowed="a mapping of settings")
    return SettingsFile(name=name, values=entry)


def _read(path: Path, source: str, flag: str = "--config") -> str:
    """Return the text of *path*, refusing what is far larger than any settings file."""
    try:
        with path.open("rb") as stream:
            content = stream.read(_SIZE_MAX_BYTES + 1)
        if len(content) > _SIZE_MAX_BYTES:
            raise ConfigError(
                field=flag, value=str(path), allowed="a file of at most 1 MiB", source=source
            )
        return content.decode()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            field=flag, value=str(path), allowed=f"a readable file: {reason}"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            field=flag, value=str(path), allowed="a file in UTF-8", source=source
        ) from error


def _parse(text: str, source: str, flag: str = "--config") -> object:
    try:
        return yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - a SafeLoader
    except _DuplicateKeyError as error:
        raise ConfigError(
            field=error.key,
            value=f"a second value in line {error.line}",
            allowed="each key once",
            source=source,
        ) from error
    except _OddNumberError as error:
        raise ConfigError(
            field=flag,
            value=f"{error.text} in line {error.line}",
            allowed="numbers in plain decimal, like 1000 or 0.5",
            source=source,
        ) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        detail = " ".join(str(error).split())[:200]
        raise ConfigError(field=flag, value=detail, allowed="valid YAML", source=source) from error
