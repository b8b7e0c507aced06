"""Every configuration on the engines' page works in the layouts it is given for."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import yaml
from fake_engines import fake_engine
from served_engines import producing

from inferencecache.app.doctor import diagnose
from inferencecache.app.doctor_findings import CODES
from inferencecache.settings.doctor import DoctorSettings
from inferencecache.settings.producer import DecodeSettings
from inferencecache.simulation import parse_script

PAGE = (Path(__file__).parents[2] / "docs" / "engines.md").read_text()
BLOCK = re.compile(r"<!-- engine: (?P<head>[^\n]+) -->\n```\n(?P<command>.*?)\n```", re.DOTALL)
CONFIG = re.compile(r"--kv-events-config '(?P<config>[^']+)'")
PORT = re.compile(r":\d{4}\"")
LIFE = """
- {do: serve, start: 1000, count: 64}
- {do: serve, start: 1000, count: 96}
- {do: remove, start: 1000, count: 64, first_block: 48}
- {do: serve, start: 5000, count: 160, lost: true}
- {do: serve, start: 9000, count: 32}
"""


class Example(NamedTuple):
    """One configuration under one release."""

    release: str
    config: str
    block_size: int
    ranks: int
    hash_form: str

    @property
    def settings(self) -> dict[str, object]:
        """The fake engine's."""
        return {
            "layout": self.release,
            "kv_events_config": self.config,
            "block_size_tokens": self.block_size,
            "ranks": self.ranks,
            "hash_form": self.hash_form,
        }


def examples() -> Iterator[Example]:
    """Yield every configuration of the page for every release named above it."""
    for block in BLOCK.finditer(PAGE):
        releases, _, option = block["head"].partition("; ")
        name, _, value = option.partition(" ")
        found = CONFIG.search(block["command"])
        assert found is not None
        is_page_size_given = "--page-size 16" in block["command"]
        assert ("sglang" in releases) <= (is_page_size_given or name == "block-size")
        for release in releases.split():
            yield Example(
                release=release,
                config=PORT.sub(':0"', found["config"]),
                block_size=int(value) if name == "block-size" else 16,
                ranks=int(value) if name == "dp-size" else 1,
                hash_form=value if name == "hash-form" else "auto",
            )


EXAMPLES = list(examples())


def test_the_page_has_configurations() -> None:
    """Each engine has several, and none is left without a release."""
    assert PAGE.count("--kv-events-config '") == len(BLOCK.findall(PAGE)) + 1
    assert {example.release.partition("-")[0] for example in EXAMPLES} == {"vllm", "sglang"}


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=lambda one: f"{one.release}-{one.block_size}-{one.hash_form}"
)
async def test_configuration_leads_to_an_index_that_is_right(example: Example) -> None:
    """Engine, subscriber and server end with exactly the keys that must result."""
    async with fake_engine(**example.settings) as engine, producing(engine) as rig:
        for rank in range(example.ranks):
            for step in parse_script(LIFE, "life"):
                await engine.play(msgspec.structs.replace(step, rank=rank))
        await rig.settled()

        assert rig.held() == rig.expected()
        assert rig.entries == len(rig.expected()) > 0


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=lambda one: f"{one.release}-{one.block_size}-{one.hash_form}"
)
async def test_doctor_finds_nothing_wrong(example: Example) -> None:
    """What the page says to check with agrees that nothing fails."""
    async with fake_engine(**example.settings) as engine:
        examined = DoctorSettings(
            engine_endpoint=engine.endpoints[0],
            replay_endpoint=engine.replay_endpoints[0],
            metrics_url=engine.metrics_url,
            ranks=example.ranks,
            hash_scheme=example.release.partition("-")[0],
        )
        examination = asyncio.create_task(diagnose(examined, DecodeSettings()))
        await engine.wait_rank_subscribed(0)
        for step in parse_script("[{do: serve, start: 1000, count: 64}]", "script"):
            await engine.play(step)
        diagnosis = await examination

    worst = {finding.code for finding in diagnosis.findings if finding.status in {"FAIL", "WARN"}}
    assert worst <= {"EL004"}


def test_every_code_has_its_row() -> None:
    """The table lists exactly the doctor's codes with their statuses."""
    rows = re.findall(r"^\| (E\w\d{3}) \| (\w+) \|", PAGE, re.MULTILINE)

    assert rows == [(code, status.value) for code, (status, _) in CODES.items()]


def test_the_script_on_the_page_is_one() -> None:
    """Every step shown can be played."""
    (script,) = re.findall(r"```\n(- \{do: serve, start: 1, count: 64\}.*?)```", PAGE, re.DOTALL)

    assert len(parse_script(script, "page")) == len(yaml.safe_load(script)) == 12
