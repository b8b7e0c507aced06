"""What can be picked follows a real directory, and a mistake leaves it as it was."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from event_records import WAIT_SECONDS, RecordedLog
from picker_texts import MODELS, PROVIDER, provider, result_of, worker_set

from inferencecache.app.resources import ResourceParts, Resources
from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.picker.fleet import WorkerSet
from inferencecache.service.picker_objects import PickerObjects
from inferencecache.settings.fleet import FleetSettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.transport.system_clock import SystemClock

LOADED = "resources_loaded"
SET = worker_set(f"{{{MODELS}, endpointsFile: a.endpoints.yaml}}")


class Followed:
    """Objects that follow a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = RecordedLog()
        clock = SystemClock()
        self.objects = PickerObjects(FleetSettings(), clock)
        settings = ResourceSettings(
            directory=str(directory),
            debounce_ns=20 * NS_PER_MS,
            debounce_max_ns=100 * NS_PER_MS,
            rescan_interval_ns=600 * NS_PER_S,
        )
        self.resources = Resources(
            ResourceParts(settings=settings, consumers=(self.objects,), clock=clock, log=self.log)
        )

    def states(self) -> dict[str, str]:
        """Return the state of each object by its name."""
        items = result_of(self.objects.manifests_slices())["items"]
        return {item["metadata"]["name"]: item["status"]["state"] for item in items}

    def addresses(self) -> list[str]:
        """Return the addresses of every endpoint that can be picked."""
        return [
            endpoint.address
            for tier in self.objects.fleet.everything.tiers
            for member in tier.members
            if isinstance(member, WorkerSet)
            for endpoint in member.endpoints
        ]

    async def put(self, name: str, text: str) -> None:
        """Write a file anew and wait until it was read."""
        loads = len(self.log.named(LOADED))
        fresh = self.directory / f".{name}"
        fresh.write_text(text)
        fresh.rename(self.directory / name)
        async with asyncio.timeout(WAIT_SECONDS):
            await self.log.wait_for(LOADED, loads + 1)


@asynccontextmanager
async def following(directory: Path) -> AsyncIterator[Followed]:
    """Follow *directory* for the length of the block."""
    followed = Followed(directory)
    await followed.resources.start()
    task = asyncio.create_task(followed.resources.run())
    try:
        yield followed
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_states_follow_the_files(tmp_path: Path) -> None:
    """A provider loses its name to a worker set, and has it back."""
    (tmp_path / "p.yaml").write_text(provider(name="x"))
    async with following(tmp_path) as followed:
        assert followed.states() == {"x": "Accepted"}
        await followed.put("w.yaml", worker_set(name="y"))
        assert followed.states() == {"x": "Accepted", "y": "Accepted"}
        await followed.put("p.yaml", provider(name="y"))
        items = result_of(followed.objects.manifests_slices())["items"]
        assert [item["status"]["state"] for item in items] == ["AmbiguousName", "Accepted"]
        await followed.put("w.yaml", worker_set(name="z"))
        assert followed.states() == {"y": "Accepted", "z": "Accepted"}


async def test_a_bad_file_keeps_the_last_good_fleet(tmp_path: Path) -> None:
    """Whatever is wrong with it; the error is told."""
    (tmp_path / "p.yaml").write_text(provider())
    async with following(tmp_path) as followed:
        before = followed.objects.fleet.everything
        for text in ("[", provider("{api: 7}"), provider("{modles: []}"), "kind: Unknown\n"):
            await followed.put("p.yaml", text)
            assert followed.resources.load.errors
            assert followed.objects.fleet.everything == before
        await followed.put("p.yaml", provider(PROVIDER.replace("OpenAI", "Other")))
        assert followed.states() == {"p": "UnsupportedApiFormat"}
        assert followed.objects.fleet.everything.tiers == ()


async def test_endpoints_follow_their_file(tmp_path: Path) -> None:
    """Those of a broken file stay."""
    (tmp_path / "w.yaml").write_text(SET)
    async with following(tmp_path) as followed:
        assert followed.states() == {"w": "Incomplete"}
        await followed.put("a.endpoints.yaml", "- {name: a, address: 'h:1'}\n")
        assert (followed.states(), followed.addresses()) == ({"w": "Accepted"}, ["h:1"])
        await followed.put("a.endpoints.yaml", "- {name: a, address: 'h:2'}\n")
        assert followed.addresses() == ["h:2"]
        await followed.put("a.endpoints.yaml", "- {name: a, address: nowhere}\n")
        assert (followed.states(), followed.addresses()) == ({"w": "Accepted"}, ["h:2"])
        error = await followed.log.wait_for("resource_error")
        assert (error["file"], error["field"]) == ("a.endpoints.yaml", "spec.endpoints[0].address")
        await followed.put("a.endpoints.yaml", "[]")
        assert (followed.states(), followed.addresses()) == ({"w": "Incomplete"}, [])
