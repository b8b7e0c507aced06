"""Where the configuration of the picker's plugins stands, and what it says now.

Among resource files it is gone with its file or document, as every object is. A file that cannot be
read, or in which something stands of which nobody knows what it is, takes nothing away.
"""

from collections.abc import Sequence
from pathlib import Path

from inferencecache.clock import Clock
from inferencecache.errors import ConfigError
from inferencecache.resources import LoadState, ResourceLoader, SourceFile, product_kinds
from inferencecache.resources.endpoint_picker_config import (
    KIND,
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
        self._place = ""
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
            self._config = self._config_in(found)
            self._found = found
        return self._config

    def _config_in(self, files: Sequence[SourceFile]) -> EndpointPickerConfig | None:
        placed = find_endpoint_picker_config(files, self._resources)
        if placed is not None:
            self._place = placed.file
            return placed.config
        for source in files:
            if source.name == self._place:
                self._require_clarity(source)
        self._place = ""
        return None

    def _require_clarity(self, source: SourceFile) -> None:
        """Let *source* pass if it certainly has no configuration any more.

        Raises:
            ConfigError: It may be meant to have one.
        """
        load = ResourceLoader(product_kinds(), self._resources).load([source], LoadState())
        reading = load.readings[source.name]
        if reading.is_complete:
            return
        error = next((error for error in reading.errors if not error.object), reading.errors[0])
        raise ConfigError(
            field=error.field or KIND,
            value=error.value.strip("'"),  # the error puts it in quotes itself
            allowed=error.allowed,
            source=f"{source.name}:{error.place.line}" if error.place.line else source.name,
        )

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
