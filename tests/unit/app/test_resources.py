"""Objects put into effect, and a server without any."""

import asyncio
import threading
from pathlib import Path

import pytest
from event_records import RecordedLog
from resource_texts import load, policy

from inferencecache.app.resources import FilePolicies, ResourceParts, Resources
from inferencecache.clock import ManualClock
from inferencecache.index import PrefixIndex
from inferencecache.policy import CachePolicy, PolicySnapshot, PolicyStore
from inferencecache.resources import SourceFile
from inferencecache.service import CachePlane, PlaneParts
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.policy import PolicySettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.transport.resource_files import ResourceFiles


def plane() -> CachePlane:
    """Return a plane without policies."""
    store = PolicyStore(PolicySettings(), default_ttl_ns=1)
    return CachePlane(
        PlaneParts(index=PrefixIndex(IndexSettings(), store), policies=store, clock=ManualClock())
    )


def test_a_push_between_two_slices_is_kept() -> None:
    """Whatever comes between is in force afterwards, beside what the files say."""
    target = plane()
    steps = FilePolicies(target, PolicySettings()).apply_slices(
        load({"a.yaml": policy("{minimumPrefixTokens: 1}")})
    )
    for number, _ in enumerate(steps):
        pushed = CachePolicy(namespace="pushed", minimum_prefix_tokens=number + 1)
        if number < 8:
            target.set_policy(PolicySnapshot(policies=(pushed,)))

    assert target.policies.resolved("team-a").minimum_prefix_tokens == 1
    assert target.policies.resolved("pushed").minimum_prefix_tokens == 8


async def test_without_a_directory_there_is_nothing_to_read() -> None:
    """Nothing is started, counted or logged."""
    log = RecordedLog()
    resources = Resources(
        ResourceParts(settings=ResourceSettings(), consumers=(), clock=ManualClock(), log=log)
    )

    await resources.start()

    assert not resources.is_enabled
    assert not resources.load.objects
    assert resources.families() == []
    assert resources.status().source.directory == ""
    assert log.events == []


async def test_errors_beyond_a_limit_are_counted_but_not_logged(tmp_path: Path) -> None:
    """A directory full of mistakes does not fill the log."""
    for number in range(5):
        (tmp_path / f"{number}.yaml").write_text("[")
    log = RecordedLog()
    settings = ResourceSettings(directory=str(tmp_path), errors_logged_max=2)

    await Resources(
        ResourceParts(settings=settings, consumers=(), clock=ManualClock(), log=log)
    ).start()

    assert len(log.named("resource_error")) == 2
    assert log.named("resources_loaded")[0]["errors"] == 5
    assert log.named("resources_loaded")[0]["errors_unlogged"] == 3


async def test_a_look_that_was_slow_takes_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has read is older than what the next one reads, so the next one comes after it."""
    target, file = plane(), tmp_path / "a.yaml"
    resources = Resources(
        ResourceParts(
            settings=ResourceSettings(directory=str(tmp_path)),
            consumers=(FilePolicies(target, PolicySettings()),),
            clock=ManualClock(),
            log=RecordedLog(),
        )
    )
    await resources.start()
    read, has_read, may_go_on = ResourceFiles.read, threading.Event(), threading.Event()

    def slow(files: ResourceFiles) -> tuple[SourceFile, ...]:
        found = read(files)
        has_read.set()
        may_go_on.wait()
        return found

    file.write_text(policy("{minimumPrefixTokens: 1}"))
    with monkeypatch.context() as patched:
        patched.setattr(ResourceFiles, "read", slow)
        first = asyncio.create_task(resources.look())
        await asyncio.to_thread(has_read.wait)
    file.write_text(policy("{minimumPrefixTokens: 22}"))
    second = asyncio.create_task(resources.look())
    await asyncio.wait({second}, timeout=0.3)
    may_go_on.set()
    await asyncio.gather(first, second)

    assert target.policies.resolved("team-a").minimum_prefix_tokens == 22
