"""Plugins as a server loads them, from texts that a test writes into files."""

from pathlib import Path

from served_plane import Recorder

from inferencecache.app.picker_plugins import PickerPluginParts, PickerPlugins
from inferencecache.clock import ManualClock
from inferencecache.settings.picker_plugins import PickerPluginSettings
from inferencecache.settings.resources import ResourceSettings

HEAD = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n"


def load(
    directory: Path, text: str, log: Recorder | None = None, **settings: object
) -> PickerPlugins:
    """Load the plugins that *text* names."""
    file = directory / "plugins.yaml"
    file.write_text(text)
    return PickerPlugins(
        PickerPluginParts(
            settings=PickerPluginSettings(config_file=str(file), **settings),
            resources=ResourceSettings(),
            clock=ManualClock(),
            log=log or Recorder(),
            log_interval_ns=0,
        )
    )


def in_directory(directory: Path, log: Recorder | None = None, **texts: str) -> PickerPlugins:
    """Load the plugins that a directory of resource files names."""
    for name, text in texts.items():
        (directory / f"{name}.yaml").write_text(text)
    return PickerPlugins(
        PickerPluginParts(
            settings=PickerPluginSettings(),
            resources=ResourceSettings(directory=str(directory)),
            clock=ManualClock(),
            log=log or Recorder(),
            log_interval_ns=0,
        )
    )
