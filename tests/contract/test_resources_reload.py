"""A real directory, really watched: what changes in it is in force soon, what breaks is not."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from certificates import replace_file
from event_records import WAIT_SECONDS, RecordedLog
from resource_texts import policy, tenant, together

from inferencecache.app.resources import FilePolicies, ResourceParts, Resources
from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.errors import ConfigError
from inferencecache.index import PrefixIndex
from inferencecache.policy import CachePolicy, PolicyLayer, PolicySnapshot, PolicyStore
from inferencecache.service import CachePlane, PlaneParts
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.policy import PolicySettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.transport.metrics_resources import ReloadOutcome
from inferencecache.transport.system_clock import SystemClock

MINUTE_NS = 60 * NS_PER_S
HOUR_NS = 60 * MINUTE_NS
LOADED = "resources_loaded"


class Followed:
    """A plane whose policies follow a directory.

    Attributes:
        directory: The directory.
        plane: The plane.
        resources: What follows.
        log: What it logs.
    """

    def __init__(self, directory: Path, rescan_interval_ns: int) -> None:
        self.directory = directory
        self.log = RecordedLog()
        clock = SystemClock()
        store = PolicyStore(PolicySettings(), default_ttl_ns=HOUR_NS)
        index = PrefixIndex(IndexSettings(), store)
        self.plane = CachePlane(PlaneParts(index=index, policies=store, clock=clock))
        settings = ResourceSettings(
            directory=str(directory),
            debounce_ns=20 * NS_PER_MS,
            debounce_max_ns=100 * NS_PER_MS,
            rescan_interval_ns=rescan_interval_ns,
        )
        self.resources = Resources(
            ResourceParts(
                settings=settings,
                consumers=(FilePolicies(self.plane, PolicySettings()),),
                clock=clock,
                log=self.log,
            )
        )

    def ttl_minutes(self, tenant_id: str = "team-a") -> int:
        """Return the lifetime of the tenant's entries; 60 without a policy."""
        return self.plane.policies.resolved(tenant_id).ttl_ns // MINUTE_NS

    def numbers(self) -> dict[tuple[str, tuple[str, ...]], float]:
        """Return the metrics by name and label values."""
        return {
            (family.spec.name, labels): number
            for family in self.resources.families()
            for labels, number in family.numbers.items()
        }

    async def until_ttl(self, minutes: int, tenant_id: str = "team-a") -> None:
        """Wait until the tenant's entries live so long."""
        loads = 1
        async with asyncio.timeout(WAIT_SECONDS):
            while self.ttl_minutes(tenant_id) != minutes:
                loads = max(loads, len(self.log.named(LOADED))) + 1
                await self.log.wait_for(LOADED, loads)

    def put(self, name: str, text: str) -> None:
        """Put a file there as a whole; one that is written in place is empty for a moment."""
        replace_file(self.directory / name, text.encode())


@asynccontextmanager
async def following(
    directory: Path, rescan_interval_ns: int = 600 * NS_PER_S
) -> AsyncIterator[Followed]:
    """Follow *directory* for the length of the block."""
    followed = Followed(directory, rescan_interval_ns)
    await followed.resources.start()
    task = asyncio.create_task(followed.resources.run())
    try:
        yield followed
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def minutes(number: int, name: str = "default", namespace: str = "team-a") -> str:
    """Return a policy whose entries live so long."""
    return policy(f"{{evictionTTL: {number}m}}", name=name, namespace=namespace)


async def test_files_are_in_force_at_the_start_and_follow_changes(tmp_path: Path) -> None:
    """Written, changed, joined by another file, taken away."""
    (tmp_path / "a.yaml").write_text(together(minutes(5), tenant("{tenantID: team-a}")))
    async with following(tmp_path) as followed:
        assert followed.ttl_minutes() == 5
        followed.put("a.yaml", minutes(6))
        await followed.until_ttl(6)
        followed.put("b.yml", minutes(7, namespace="team-b"))
        await followed.until_ttl(7, "team-b")
        (tmp_path / "a.yaml").unlink()
        await followed.until_ttl(60)

        assert followed.ttl_minutes("team-b") == 7
        assert followed.resources.status().source.revision == 4


async def test_only_resource_files_count(tmp_path: Path) -> None:
    """Notes, hidden files and subdirectories lie there without effect."""
    (tmp_path / "notes.txt").write_text("[")
    (tmp_path / ".hidden.yaml").write_text("[")
    (tmp_path / "more.yaml").mkdir()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.yaml").write_text(minutes(5))
    async with following(tmp_path) as followed:
        assert followed.resources.status().files_total == 0
        assert followed.resources.status().errors_total == 0


async def test_a_mistake_keeps_the_last_good_state_and_is_told(tmp_path: Path) -> None:
    """In the log once, in the metrics and in the status until it is mended."""
    (tmp_path / "a.yaml").write_text(minutes(5))
    async with following(tmp_path) as followed:
        followed.put("a.yaml", policy("{evictionTTL: 6}"))
        error = await followed.log.wait_for("resource_error")

        assert error["file"] == "a.yaml"
        assert error["document"] == 1
        assert error["object"] == "CachePolicy team-a/default"
        assert error["field"] == "spec.evictionTTL"
        assert error["value"] == "6"
        assert "for example '30m'" in error["allowed"]
        await followed.log.wait_for(LOADED, 2)
        assert followed.ttl_minutes() == 5
        status = followed.resources.status()
        assert (status.errors_total, status.objects_held) == (1, 1)
        assert status.errors[0].field == "spec.evictionTTL"
        assert [found.is_held for found in status.objects] == [True]
        numbers = followed.numbers()
        assert numbers["inferencecache_resource_errors", ("CachePolicy",)] == 1
        assert numbers["inferencecache_resource_errors", ("unknown",)] == 0
        assert numbers["inferencecache_resource_objects", ("CachePolicy", "Active")] == 1
        assert numbers["inferencecache_resource_objects_held", ()] == 1
        followed.put("b.yaml", tenant())
        await followed.log.wait_for(LOADED, 3)
        assert len(followed.log.named("resource_error")) == 1
        followed.put("a.yaml", minutes(7))
        await followed.until_ttl(7)
        assert followed.resources.status().errors_total == 0


async def test_half_a_file_changes_nothing(tmp_path: Path) -> None:
    """A writer that pauses in the middle is waited for."""
    whole = together(minutes(6), minutes(8, namespace="team-b"), "# end\n")
    (tmp_path / "a.yaml").write_text(together(minutes(5), minutes(5, namespace="team-b")))
    async with following(tmp_path) as followed:
        with (tmp_path / "a.yaml").open("w") as stream:
            stream.flush()
            await followed.log.wait_for("resource_error", 1)
            stream.write(whole[: whole.index("spec: {evictionTTL: 8m") + 9])
            stream.flush()
            await followed.log.wait_for("resource_error", 2)

            assert (followed.ttl_minutes(), followed.ttl_minutes("team-b")) == (5, 5)
            stream.write(whole[whole.index("spec: {evictionTTL: 8m") + 9 :])
        await followed.until_ttl(8, "team-b")

        assert followed.ttl_minutes() == 6


def swap(mount: Path, version: str, texts: dict[str, str]) -> None:
    """Put *texts* into the mount as Kubernetes does: a new directory, one link switched."""
    (mount / version).mkdir()
    for name, text in texts.items():
        (mount / version / name).write_text(text)
        if not (mount / name).is_symlink():
            (mount / name).symlink_to(Path("..data") / name)
    (mount / "..data_tmp").symlink_to(version)
    before = (mount / "..data").readlink() if (mount / "..data").is_symlink() else None
    (mount / "..data_tmp").rename(mount / "..data")
    for name in {path.name for path in mount.iterdir() if path.is_symlink()} - texts.keys():
        if not name.startswith(".."):
            (mount / name).unlink()
    if before is not None:
        shutil.rmtree(mount / before)


async def test_a_mounted_config_map_is_switched_as_a_whole(tmp_path: Path) -> None:
    """All files behind the link change together, and one that is gone is gone."""
    swap(tmp_path, "..1", {"a.yaml": minutes(5), "b.yaml": minutes(5, namespace="team-b")})
    async with following(tmp_path) as followed:
        assert (followed.ttl_minutes(), followed.ttl_minutes("team-b")) == (5, 5)
        swap(tmp_path, "..2", {"a.yaml": minutes(6), "b.yaml": minutes(6, namespace="team-b")})
        await followed.until_ttl(6)
        assert followed.ttl_minutes("team-b") == 6
        swap(tmp_path, "..3", {"a.yaml": minutes(7)})
        await followed.until_ttl(7)
        await followed.until_ttl(60, "team-b")

        assert followed.resources.status().errors_total == 0


async def test_a_directory_that_is_gone_takes_nothing_away(tmp_path: Path) -> None:
    """Nor does one that comes back; what is in it then counts."""
    directory = tmp_path / "resources"
    directory.mkdir()
    (directory / "a.yaml").write_text(minutes(5))
    async with following(directory, rescan_interval_ns=50 * NS_PER_MS) as followed:
        directory.rename(tmp_path / "elsewhere")
        problem = await followed.log.wait_for("resource_directory_unreadable")

        assert problem["objects_kept"] == 1
        assert followed.ttl_minutes() == 5
        assert followed.resources.status().source.problem == "No such file or directory"
        replacement = tmp_path / "replacement"
        replacement.mkdir()
        (replacement / "a.yaml").write_text(minutes(6))
        replacement.rename(directory)
        await followed.until_ttl(6)
        assert followed.resources.status().source.problem == ""
        followed.put("a.yaml", minutes(7))
        await followed.until_ttl(7)
        assert len(followed.log.named("resource_directory_unreadable")) == 1


async def test_a_directory_made_anew_is_followed(tmp_path: Path) -> None:
    """Even where it gets the number that the old one had; no rescan is needed."""
    directory = tmp_path / "resources"
    directory.mkdir()
    (directory / "a.yaml").write_text(minutes(5))
    async with following(directory) as followed:
        for number in (6, 7, 8):
            shutil.rmtree(directory)
            directory.mkdir()
            followed.put("a.yaml", minutes(number))
            await followed.until_ttl(number)
        followed.put("a.yaml", minutes(9))
        await followed.until_ttl(9)
        assert followed.resources.status().source.is_watched


async def test_a_directory_behind_a_switched_link_is_followed(tmp_path: Path) -> None:
    """A mount whose own path leads over a link, as ``..data/policies`` does."""
    for number in (5, 6, 7):
        (tmp_path / f"..{number}" / "policies").mkdir(parents=True)
        (tmp_path / f"..{number}" / "policies" / "a.yaml").write_text(minutes(number))
    (tmp_path / "..data").symlink_to("..5")
    async with following(tmp_path / "..data" / "policies") as followed:
        for number in (6, 7):
            (tmp_path / "..data_tmp").symlink_to(f"..{number}")
            (tmp_path / "..data_tmp").rename(tmp_path / "..data")
            await followed.until_ttl(number)
        shutil.rmtree(tmp_path / "..5")
        followed.put("a.yaml", minutes(8))
        await followed.until_ttl(8)


async def test_a_directory_that_comes_back_later_is_followed(tmp_path: Path) -> None:
    """While it is away nothing changes, and the name is looked at again and again."""
    directory = tmp_path / "resources"
    directory.mkdir()
    (directory / "a.yaml").write_text(minutes(5))
    async with following(directory) as followed:
        shutil.rmtree(directory)
        await followed.log.wait_for("resource_directory_unreadable")
        assert followed.ttl_minutes() == 5
        directory.mkdir()
        followed.put("a.yaml", minutes(6))
        await followed.until_ttl(6)


async def test_changes_without_notice_are_found_by_rescans(tmp_path: Path) -> None:
    """What a link points to lies outside of the directory that is watched."""
    directory = tmp_path / "resources"
    directory.mkdir()
    outside = tmp_path / "outside.yaml"
    outside.write_text(minutes(5))
    (directory / "a.yaml").symlink_to(outside)
    async with following(directory, rescan_interval_ns=50 * NS_PER_MS) as followed:
        outside.write_text(minutes(6))
        await followed.until_ttl(6)


async def test_a_storm_of_changes_ends_in_the_last_state(tmp_path: Path) -> None:
    """Every state in between may be skipped, none may stick, and looks do not pile up.

    Files are written as people do, from their start to their end.
    """
    async with following(tmp_path) as followed:
        for number in range(1, 501):
            text = minutes(number, namespace=f"team-{number % 7}")
            (tmp_path / f"{number % 7}.yaml").write_text(text)
            if number % 50 == 0:
                await asyncio.sleep(0)
        followed.put("last.yaml", minutes(1, namespace="last"))
        await followed.until_ttl(1, "last")

        assert [followed.ttl_minutes(f"team-{n}") for n in range(7)] == [
            max(number for number in range(1, 501) if number % 7 == n) for n in range(7)
        ]
        assert len(followed.log.named(LOADED)) < 100


async def test_unreadable_files_and_links_to_nothing_keep_their_objects(tmp_path: Path) -> None:
    """A link without a file, or a file that is too long, is an error, not a removal."""
    (tmp_path / "a.yaml").write_text(minutes(5))
    (tmp_path / "b.yaml").write_text(minutes(5, namespace="team-b"))
    async with following(tmp_path) as followed:
        (tmp_path / "a.yaml").unlink()
        (tmp_path / "a.yaml").symlink_to(tmp_path / "nowhere")
        (tmp_path / "b.yaml").write_text("# " + "x" * ResourceSettings().file_bytes_max)
        await followed.log.wait_for("resource_error", 2)
        os.mkfifo(tmp_path / "c.yaml")
        await followed.log.wait_for("resource_error", 3)

        assert (followed.ttl_minutes(), followed.ttl_minutes("team-b")) == (5, 5)
        assert {error["value"] for error in followed.log.named("resource_error")} == {
            "a link to nothing",
            f"more than {ResourceSettings().file_bytes_max} bytes",
            "a special file",
        }


async def test_a_directory_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    """A typo in a path is not the same as no policies."""
    followed = Followed(tmp_path / "nowhere", NS_PER_S)

    with pytest.raises(ConfigError, match="--resources"):
        await followed.resources.start()


async def test_files_with_mistakes_do_not_stop_the_start(tmp_path: Path) -> None:
    """What is right is in force."""
    (tmp_path / "a.yaml").write_text("[")
    (tmp_path / "b.yaml").write_text(minutes(5))
    async with following(tmp_path) as followed:
        assert followed.ttl_minutes() == 5
        assert followed.resources.status().errors_total == 1


async def test_pushes_and_files_are_layers(tmp_path: Path) -> None:
    """A reload that changes other tenants does not take back a push."""
    (tmp_path / "a.yaml").write_text(minutes(5))
    async with following(tmp_path) as followed:
        push = CachePolicy(namespace="team-a", eviction_ttl_ns=9 * MINUTE_NS)
        followed.plane.set_policy(PolicySnapshot(policies=(push,)))
        followed.put("b.yaml", minutes(7, namespace="team-b"))
        await followed.until_ttl(7, "team-b")
        assert followed.ttl_minutes() == 9
        (row, _) = followed.plane.policy_layers.view().policies
        assert row.in_force is PolicyLayer.PUSH
        assert row.files is not None
        followed.put("a.yaml", minutes(6))
        await followed.until_ttl(6)


async def test_looks_without_changes_cost_nothing(tmp_path: Path) -> None:
    """Nothing is put into force again, so no revision moves."""
    (tmp_path / "a.yaml").write_text(minutes(5))
    followed = Followed(tmp_path, NS_PER_S)
    await followed.resources.start()
    revision = followed.plane.policies.revision

    assert await followed.resources.look() is ReloadOutcome.UNCHANGED
    numbers = followed.numbers()
    assert numbers["inferencecache_resource_reloads_total", ("changed",)] == 1
    assert numbers["inferencecache_resource_reloads_total", ("unchanged",)] == 1
    assert followed.plane.policies.revision == revision
