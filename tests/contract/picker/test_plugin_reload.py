"""A configuration of plugins that changes under a real server, and what operators see of it."""

import asyncio
from pathlib import Path

from get_command import run_get
from picker_texts import provider
from pipeline_rig import director, key, pipeline
from served_picker import SMALL, serve_picker
from server_process import ServerProcess, serving

from inferencecache.app.picker_plugins import no_plugins
from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.picker.pipeline import Produced

HEAD = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n"
PLUGINS = f"{HEAD}plugins: [{{type: random-picker}}]\n"
CHEAPEST = (
    f"{PLUGINS}schedulingProfiles: [{{name: cheapest, plugins: [{{pluginRef: random-picker}}]}}]\n"
)
POOL = """
apiVersion: inferencecache.io/v1alpha1
kind: InferencePool
metadata: {name: tiered}
spec:
  tiers:
    - name: first
      rankBy: Profile
      profile: cheapest
      members: [{kind: InferenceProvider, name: p}]
"""
LIMIT_S = 60


async def state_of_pool(*where: str) -> str:
    """Return what ``inferencecache get pools`` shows of the one pool."""
    shown = await run_get("pools", *where)
    assert shown.code == 0, shown.stderr
    return shown.stdout.splitlines()[1].split()[3]


def url_of(server: ServerProcess) -> str:
    """Return the option that names the server's control listener."""
    return f"--control-url=http://{server.startup['snapshot_addr']}"


async def test_a_pool_follows_the_profiles_of_a_changing_configuration(tmp_path: Path) -> None:
    """No profile, then one, then a mistake that changes nothing, then none again."""
    objects, config = tmp_path / "objects", tmp_path / "plugins.yaml"
    objects.mkdir()
    (objects / "p.yaml").write_text(provider())
    (objects / "pool.yaml").write_text(POOL)
    config.write_text(PLUGINS)
    options = (
        f"--resources={objects}",
        f"--picker-config={config}",
        "--picker-config-check-interval=20ms",
    )
    async with serving(*options) as server, asyncio.timeout(LIMIT_S):
        where = url_of(server)
        assert await state_of_pool(where) == "ProfileMissing"
        assert "the profile cheapest" in (await run_get("pools", "-o", "yaml", where)).stdout
        config.write_text(CHEAPEST)
        loaded = await server.read_until("picker_config_loaded")
        assert loaded["profiles"] == "cheapest"
        assert await state_of_pool(where) == "Accepted"
        config.write_text(f"{HEAD}plugins: [{{type: nonsense}}]\n")
        refused = await server.read_until("picker_config_refused")
        assert refused["profiles_kept"] == "cheapest"
        assert "nonsense" in str(refused["reason"])
        assert await state_of_pool(where) == "Accepted"


async def test_a_directory_that_holds_the_configuration_is_read_with_it(tmp_path: Path) -> None:
    """Without a server nobody knows of a configuration that is elsewhere."""
    (tmp_path / "p.yaml").write_text(provider())
    (tmp_path / "pool.yaml").write_text(POOL)
    where = f"--resources={tmp_path}"
    assert await state_of_pool(where) == "Accepted"
    (tmp_path / "plugins.yaml").write_text(PLUGINS)
    assert await state_of_pool(where) == "ProfileMissing"
    (tmp_path / "plugins.yaml").write_text(CHEAPEST)
    assert await state_of_pool(where) == "Accepted"


class Held:
    """A producer that waits until it may go on."""

    produces = (key("held"),)

    def __init__(self) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self.calls = 0

    def produce_timeout_ns(self) -> int:
        """Return more than a slow machine needs for what comes meanwhile."""
        return LIMIT_S * NS_PER_S

    async def produce(self, *_: object) -> Produced:
        """Wait."""
        self.calls += 1
        self.begun.set()
        await self.go.wait()
        return Produced()


async def test_a_pick_under_way_keeps_its_plugins() -> None:
    """The next one goes through those that have taken their place."""
    held = Held()
    plugins, clock = director(pipeline(held=held)), ManualClock(1)
    async with serve_picker(SMALL, director=plugins, clock=clock) as served:
        first = asyncio.create_task(served.push_and_pick())
        await held.begun.wait()
        served.picker.fleet.use(no_plugins())
        second = await served.push_and_pick()
        assert not first.done()
        held.go.set()
        assert (await first).outcome == second.outcome
    assert held.calls == 1
