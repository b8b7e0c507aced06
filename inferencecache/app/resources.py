"""Keep the resource files of a directory in force while they change.

Theory of operation: a look reads the files in a thread, turns changed ones into objects in slices
on the event loop, and hands the objects to those who put them into effect, in slices too. Looks
follow one another, never two at a time: whatever changes during one is found by the next. A look
that fails, or is cut off, leaves everything as it was.
"""

import asyncio
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from inferencecache.clock import NS_PER_MS, Clock
from inferencecache.errors import ConfigError
from inferencecache.policy import PolicyLayer, PolicySnapshot
from inferencecache.resources import (
    KindRegistry,
    LoadState,
    ResourceLoader,
    SourceFile,
    product_kinds,
)
from inferencecache.resources.status import (
    DirectoryStatus,
    ResourceStatus,
    objects_by_kind,
    status_of,
)
from inferencecache.service import CachePlane
from inferencecache.service.policy_resources import policy_snapshot_slices
from inferencecache.service.rfc3339 import rfc3339
from inferencecache.settings.policy import PolicySettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.transport.drive import drive
from inferencecache.transport.giving_way import collections_paused
from inferencecache.transport.metric_cells import Family
from inferencecache.transport.metrics_resources import ReloadOutcome, ResourceMetrics
from inferencecache.transport.resource_files import DirectoryError, ResourceFiles
from inferencecache.transport.resource_watch import DirectoryWatch
from inferencecache.transport.structured_log import EventLog


class ResourceConsumer(Protocol):
    """Puts objects into effect."""

    def apply_slices(self, load: LoadState) -> Generator[None, None, None]:
        """Put the objects of *load* in the place of all earlier ones, in slices.

        The last slice makes the change, so that whoever is cut off before has changed nothing.
        """
        ...


class FilePolicies:
    """Puts CachePolicy and CacheTenant objects into effect, as the layer of the files.

    Args:
        plane: Whose policies they are.
        settings: What a policy leaves unsaid.
    """

    def __init__(self, plane: CachePlane, settings: PolicySettings) -> None:
        self._plane = plane
        self._settings = settings

    def apply_slices(self, load: LoadState) -> Generator[None, None, None]:
        """Replace the policies and quotas of the files' layer."""
        snapshot: PolicySnapshot = yield from policy_snapshot_slices(load, self._settings)
        layers = self._plane.policy_layers
        while True:
            prepared = yield from layers.prepare_slices(PolicyLayer.FILES, snapshot)
            if layers.is_current(prepared):  # no push came in between
                layers.install(prepared)
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceParts:
    """What the resource files need around them.

    Attributes:
        settings: The directory, and how it is watched.
        consumers: Put the objects into effect, in this order.
        clock: Says when, and measures.
        log: Gets what changes and what is wrong.
        kinds: The kinds that are known.
    """

    settings: ResourceSettings
    consumers: Sequence[ResourceConsumer]
    clock: Clock
    log: EventLog
    kinds: KindRegistry = field(default_factory=product_kinds)


class Resources:
    """The objects from one directory, kept in force.

    Args:
        parts: What is around.
    """

    def __init__(self, parts: ResourceParts) -> None:
        self._parts = parts
        self._files = ResourceFiles(parts.settings, parts.clock)
        self._watch = DirectoryWatch(parts.settings)
        self._loader = ResourceLoader(parts.kinds, parts.settings)
        self._metrics = ResourceMetrics(parts.kinds.names)
        self._found: tuple[SourceFile, ...] | None = None
        self._load = LoadState()
        self._looking = asyncio.Lock()
        self._problem = ""
        self._loaded_ns: int | None = None
        self._revision = 0

    @property
    def is_enabled(self) -> bool:
        """Whether there is a directory to read."""
        return bool(self._parts.settings.directory)

    @property
    def load(self) -> LoadState:
        """The objects in force."""
        return self._load

    def status(self) -> ResourceStatus:
        """Return what is in force and what is wrong, for ``/debug/resources``."""
        settings = self._parts.settings
        source = DirectoryStatus(
            directory=settings.directory,
            problem=self._problem,
            is_watched=self._watch.is_watching,
            loaded_at="" if self._loaded_ns is None else rfc3339(self._loaded_ns),
            revision=self._revision,
        )
        return status_of(self._load, source, settings.objects_shown_max)

    def families(self) -> list[Family]:
        """Return the metrics; none without a directory."""
        return self._metrics.families() if self.is_enabled else []

    async def start(self) -> None:
        """Put the files into force for the first time; files with errors stop nothing.

        Raises:
            ConfigError: The directory cannot be read at all.
        """
        if self.is_enabled:
            await self.look()
        if self._problem:
            raise ConfigError(
                field="--resources",
                value=self._parts.settings.directory,
                allowed=f"a readable directory ({self._problem})",
            )

    async def run(self) -> None:
        """Follow the directory for ever."""
        async with self._watch.running():
            while True:
                await self.look()
                await self._watch.wait()

    async def look(self) -> ReloadOutcome:
        """Look at the directory once, after any look that has begun; put changes into force."""
        async with self._looking:
            started_ns = self._parts.clock.monotonic_ns()
            outcome = await self._look()
        self._metrics.looked(outcome)
        if outcome is ReloadOutcome.CHANGED:
            self._metrics.took(self._parts.clock.monotonic_ns() - started_ns)
        return outcome

    async def _look(self) -> ReloadOutcome:
        try:
            found = await asyncio.to_thread(self._files.read)
        except DirectoryError as error:
            if error.reason != self._problem:
                self._log_problem(error.reason)
            self._problem = error.reason
            return ReloadOutcome.UNREADABLE
        self._problem = ""
        if found == self._found:
            return ReloadOutcome.UNCHANGED
        with collections_paused:
            await self._reload(found)
        return ReloadOutcome.CHANGED

    async def _reload(self, found: tuple[SourceFile, ...]) -> None:
        """Put *found* into force; every step of it that many objects make long is a turn."""
        started_ns = self._parts.clock.monotonic_ns()
        load = await drive(self._loader.load_slices(found, self._load), rests=False)
        for consumer in self._parts.consumers:
            await drive(consumer.apply_slices(load), rests=False)
        before, self._load, self._found = self._load, load, found
        self._revision += 1
        self._loaded_ns = self._parts.clock.now_ns()
        await asyncio.sleep(0)
        self._metrics.loaded(load.errors_by_kind, objects_by_kind(load), len(load.held))
        await asyncio.sleep(0)
        self._log_load(before, self._parts.clock.monotonic_ns() - started_ns)
        await asyncio.sleep(0)
        del before  # which frees every object that is gone
        await asyncio.sleep(0)

    def _log_problem(self, reason: str) -> None:
        self._parts.log.error(
            "resource_directory_unreadable",
            directory=self._parts.settings.directory,
            reason=reason,
            objects_kept=len(self._load.objects),
        )

    def _log_load(self, before: LoadState, duration_ns: int) -> None:
        """Log errors that are new, and what has changed."""
        log, load = self._parts.log, self._load
        known = set(before.errors)
        new = [error for error in load.errors if error not in known]
        logged_max = self._parts.settings.errors_logged_max
        for error in new[:logged_max]:
            log.error(
                "resource_error",
                file=error.place.file,
                document=error.place.document,
                item=error.place.item,
                line=error.place.line,
                object=error.object,
                field=error.field,
                value=error.value,
                allowed=error.allowed,
            )
        log.info(
            "resources_loaded",
            directory=self._parts.settings.directory,
            files=len(load.readings),
            objects=len(load.objects),
            added=len(load.objects.keys() - before.objects.keys()),
            removed=len(before.objects.keys() - load.objects.keys()),
            held=len(load.held),
            errors=sum(load.errors_by_kind.values()),
            errors_unlogged=len(new[logged_max:]),
            revision=self._revision,
            duration_ms=duration_ns // NS_PER_MS,
        )
