"""The examples of the picker's page run as they stand there, and its steps lead where it says."""

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from served_fleet import ServedFleet, serve_fleet
from served_picker import SMALL, serve_picker

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.picker.choosing.survey import _REFUSALS
from inferencecache.picker.request import BodyFlaw
from inferencecache.transport.picker_convert import DECLARED_LENGTH_KEY

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "picker.md").read_text()
RESOURCES = (DOCS / "resources.md").read_text()


def example(number: int) -> dict[str, Callable[..., Awaitable[object]]]:
    """Return what the page's example defines."""
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[number]
    names: dict[str, Callable[..., Awaitable[object]]] = {}
    exec(compile(code, "docs/picker.md", "exec"), names)  # noqa: S102 - our own page
    return names


def databricks() -> str:
    """Return the provider that the steps are about, as the page of resources has it."""
    blocks = re.findall(r"```yaml\n(.*?)```", RESOURCES, re.DOTALL)
    (found,) = [block for block in blocks if "name: databricks # -> Accepted" in block]
    return found


def steps() -> list[tuple[str, str]]:
    """Return the rows of the table of states: what to do, and the state after it."""
    table = PAGE.split("### Every state of a provider")[1].split("\n## ")[0]
    return re.findall(r"^\| (.+?) \| `([^`]+)` \|$", table, re.MULTILINE)


async def test_the_example_routes_a_request() -> None:
    """What a gateway's author copies works."""
    async with serve_picker(SMALL, clock=ManualClock(1)) as served:
        endpoint, routed = await example(0)["route"](
            served.target, b'{"model":"alias","prompt":"x"}'
        )
        assert endpoint == "10.0.0.3:8000"
        assert json.loads(routed)["model"] == "a/longer-name"
        assert served.picker.plane.decisions.in_flight.total == 0


async def test_every_state_of_a_provider_comes_of_its_step(tmp_path: Path) -> None:
    """Whoever follows the page sees what it promises, row by row."""
    clock = ManualClock(1_700_000_000 * NS_PER_S)
    report = example(1)["report"]
    done = ""
    async with serve_fleet(tmp_path, databricks(), clock=clock) as served:
        for step, state in steps():
            done = await do(served, clock, report, step, done)
            assert await served.states() == {"databricks": state}, step
    assert {state for _, state in steps()} == {
        "Accepted",
        "Accepted,BackendUnresolved",
        "Accepted,BackendUnresolved,Suppressed",
        "Accepted,BackendUnauthorized",
        "Accepted,BackendUnauthorized,Suppressed",
        "Accepted,Suppressed",
    }


async def test_the_steps_work_beside_the_policy_of_the_other_page(tmp_path: Path) -> None:
    """Its rules let the example's tenant through; whoever they refuse is told so."""
    blocks = re.findall(r"```yaml\n(.*?)```", RESOURCES, re.DOTALL)
    (policy,) = [block for block in blocks if "kind: PickerPolicy" in block]
    report = example(1)["report"]
    async with serve_fleet(tmp_path, databricks(), policy) as served:
        await report(served.server.grpc_target, abort="BACKEND_UNRESOLVED")
        assert await served.states() == {"databricks": "Accepted,BackendUnresolved"}
        with pytest.raises(LookupError, match="tenant-needed"):
            await report(served.server.grpc_target, tenant="")


async def test_every_other_state_comes_of_its_file(tmp_path: Path) -> None:
    """The objects that the page of resources shows are in the states that it says."""
    section = RESOURCES.split("### InferenceProvider")[1].split("### InferenceWorkerSet")[0]
    blocks = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    promised = re.findall(r"^  name: (\S+) # -> (\w+)$", "".join(blocks), re.MULTILINE)
    async with serve_fleet(tmp_path, *blocks) as served:
        states = await served.states()
    assert {name: states[name] for name, _ in promised} == dict(promised)
    assert {state for _, state in promised} == {
        "Accepted",
        "UnsupportedApiFormat",
        "Incomplete",
        "CrossNamespaceNotGranted",
        "AmbiguousName",
    }


async def do(
    served: ServedFleet,
    clock: ManualClock,
    report: Callable[..., Awaitable[object]],
    step: str,
    before: str,
) -> str:
    """Do what a row says; return the call in it, or the one before if it has none."""
    calls = re.findall(r"`report\((.*?)\)`", step)
    call = calls[0] if calls else before
    if "curl" in step:
        ((path, body),) = re.findall(r"curl -X POST http://[^/]+(/\S+) -d '([^']+)'", PAGE)
        assert (await served.post(path, body.encode()))[0] == 200
        return before
    if "change something" in step:
        await served.put(databricks().replace("contextWindow: 32768", "contextWindow: 65536"))
        return before
    if "wait five seconds" in step:
        clock.advance_ns(6 * NS_PER_S)
    for _ in range(3 if "three times" in step else 1):
        clock.advance_ns(NS_PER_S // 100)
        options = dict(re.findall(r"(\w+)=\"?(\w+)\"?", call))
        if "status" in options:
            options["status"] = int(options["status"])
        await report(served.server.grpc_target, **options)
    return call


def test_the_page_names_every_flaw_reason_and_header() -> None:
    """A reason that is not on the page cannot be looked up."""
    for flaw in BodyFlaw:
        assert f"`{flaw.value}`" in PAGE
    for reason in _REFUSALS.values():
        assert f"`{reason}`" in PAGE
    assert DECLARED_LENGTH_KEY in PAGE
