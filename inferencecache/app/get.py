"""What can be picked, as a running server or a directory has it."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from inferencecache.errors import ConfigError
from inferencecache.picker.pipeline.build import DEFAULT_PROFILE
from inferencecache.resources import (
    LoadState,
    ResourceError,
    ResourceLoader,
    SourceFile,
    product_kinds,
)
from inferencecache.resources.endpoint_picker_config import find_endpoint_picker_config
from inferencecache.service.picker_objects import PickerObjects
from inferencecache.settings.fleet import FleetSettings
from inferencecache.settings.get import ControlClientSettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.transport.control_page import ControlPageError, fetch_control_page
from inferencecache.transport.drive import drive
from inferencecache.transport.resource_files import DirectoryError, ResourceFiles
from inferencecache.transport.system_clock import SystemClock

PAGE: Final = "/debug/picker/resources"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What there is.

    Attributes:
        items: Worker sets, providers and pools, as a manifest each.
        errors: What is wrong with the files; a server does not tell.
    """

    items: list[dict[str, Any]]
    errors: tuple[ResourceError, ...] = ()


def ask_server(settings: ControlClientSettings) -> Found:
    """Return what a server has, with what happens to it.

    Raises:
        ConfigError: A file of the settings cannot be read.
        ControlPageError: The server does not answer, or with something else.
    """
    answer = asyncio.run(fetch_control_page(settings, PAGE))
    items = answer.get("items") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ControlPageError(settings.url + PAGE, "the answer is no list of objects")
    return Found(items=items)


def read_directory(directory: str) -> Found:
    """Return what the files of a directory say, as a server would take them at its start.

    Raises:
        ConfigError: The directory cannot be read.
    """
    settings, clock = ResourceSettings(directory=directory), SystemClock()
    try:
        files = ResourceFiles(settings, clock).read()
    except DirectoryError as error:
        raise ConfigError(
            field="--resources", value=directory, allowed=f"a readable directory ({error.reason})"
        ) from error
    load = ResourceLoader(product_kinds(), settings).load(files, LoadState())
    objects = PickerObjects(FleetSettings(), clock, ages=False)
    profiles = _profiles(files, settings)
    objects.profiles = lambda: profiles
    return asyncio.run(_items(objects, load))


async def _items(objects: PickerObjects, load: LoadState) -> Found:
    await drive(objects.apply_slices(load))
    manifest = await drive(objects.manifests_slices())
    return Found(items=manifest["items"], errors=load.errors)


def _profiles(files: Iterable[SourceFile], settings: ResourceSettings) -> tuple[str, ...] | None:
    """Return the profiles that a configuration among *files* has.

    None without one, for a server may have it from elsewhere, and if it cannot be read.
    """
    with suppress(ConfigError):
        placed = find_endpoint_picker_config(files, settings)
        if placed is not None:
            profiles = placed.config.scheduling_profiles
            return tuple(found.name for found in profiles) or (DEFAULT_PROFILE,)
    return None
