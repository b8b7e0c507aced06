"""Where the configuration of the picker's plugins stands, and what it says now."""

from pathlib import Path

from inferencecache.clock import Clock
from inferencecache.errors import ConfigError
from inferencecache.resources import SourceFile
from inferencecache.resources.endpoint_picker_config import (
    EndpointPickerConfig,
    find_endpoint_picker_config,
    read_endpoint_picker_config,
)
from inferencecache.settings.resources import ResourceSettings
from inferencecache.transport.resource_files import DirectoryError, ResourceFiles


class PickerConfigSource:
    """A file of its own or, without one, the resource files.

    Args:
        file: The file; empty for none.
        resources: The directory of the resource files, and limits of files.
        clock: The time.
    """

    def __init__(self, file: str, resources: ResourceSettings, clock: Clock) -> None:
        self._file = file
        self._resources = resources
        self._files = ResourceFiles(resources, clock) if resources.directory else None
        self._found: tuple[SourceFile, ...] | None = None
        self._config: EndpointPickerConfig | None = None

    def read(self) -> EndpointPickerConfig | None:
        """Return the configuration, None if there is none; blocks while files are read.

        Raises:
            ConfigError: It cannot be read, or says something that cannot be.
        """
        if self._file:
            return read_endpoint_picker_config(self._content(), self._file, self._resources)
        if self._files is None:
            return None
        try:
            found = self._files.read()
        except DirectoryError:  # whoever loads the objects in it says so
            return self._config
        if found != self._found:
            self._config = find_endpoint_picker_config(found, self._resources)
            self._found = found
        return self._config

    def _content(self) -> bytes:
        bytes_max = self._resources.file_bytes_max
        try:
            with Path(self._file).open("rb") as opened:
                content = opened.read(bytes_max + 1)
        except OSError as error:
            allowed = f"a file that can be read: {error.strerror}"
            raise ConfigError(field="picker-config", value=self._file, allowed=allowed) from error
        if len(content) > bytes_max:
            allowed = f"a file of at most {bytes_max} bytes"
            raise ConfigError(field="picker-config", value=self._file, allowed=allowed)
        return content
