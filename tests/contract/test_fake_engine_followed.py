"""Lives of a fake engine, followed by a producer: the index ends with what the engine holds."""

import pytest
from fake_engines import fake_engine
from served_engines import EngineRig, producing

from inferencecache.simulation import parse_script

LIVES = {
    "lost messages": """
- {do: serve, start: 1000, count: 64}
- {do: serve, start: 2000, count: 64, lost: true}
- {do: evict, blocks: 2, lost: true}
- {do: serve, start: 3000, count: 64}
""",
    "numbers sent twice": """
- {do: serve, start: 1000, count: 64}
- {do: duplicate}
- {do: remove, start: 1000, count: 64}
- {do: duplicate}
- {do: serve, start: 2000, count: 32}
""",
    "restart": """
- {do: serve, start: 1000, count: 64}
- {do: serve, start: 2000, count: 64}
- {do: restart}
- {do: serve, start: 2000, count: 32}
""",
    "restart that overtakes": """
- {do: serve, start: 1000, count: 64}
- {do: restart}
- {do: serve, start: 2000, count: 32, lost: true}
- {do: serve, start: 3000, count: 32}
- {do: serve, start: 4000, count: 32}
""",
    "clear between stores": """
- {do: serve, start: 1000, count: 64}
- {do: clear}
- {do: serve, start: 2000, count: 64}
""",
    "copies": """
- {do: serve, start: 1000, count: 64}
- {do: copy, start: 1000, count: 64}
- {do: remove, start: 1000, count: 64}
- {do: serve, start: 2000, count: 16}
- {do: copy, start: 2000, count: 16}
- {do: remove, start: 2000, count: 16}
- {do: remove, start: 2000, count: 16}
""",
    "tiers": """
- {do: serve, start: 1000, count: 64}
- {do: offload, start: 1000, count: 64}
- {do: remove, start: 1000, count: 64, first_block: 1}
- {do: remove, start: 1000, count: 64, first_block: 3, medium: CPU}
""",
    "loaded back": """
- {do: serve, start: 1000, count: 32}
- {do: offload, start: 1000, count: 32}
- {do: remove, start: 1000, count: 32}
- {do: serve, start: 1000, count: 48}
""",
    "salt": """
- {do: serve, start: 1000, count: 64, salt: private}
- {do: serve, start: 1000, count: 32}
- {do: serve, start: 1000, count: 96, salt: private}
""",
    "adapters": """
- {do: serve, start: 1000, count: 64}
- {do: serve, start: 1000, count: 64, lora_id: 1, lora_name: sql}
- {do: serve, start: 2000, count: 64, lora_id: 2, lora_name: chat}
- {do: remove, start: 1000, count: 64, first_block: 2}
""",
}
NEWEST = ("vllm-0.22", "vllm-0.33", "sglang-0.5.22")


async def follow(rig: EngineRig, script: str) -> None:
    """Play a script, and compare the index with the engine in the end."""
    for step in parse_script(script, "life", ranks=len(rig.engine.endpoints)):
        await rig.play(step)
    await rig.settled()

    assert rig.held() == rig.expected()
    assert rig.entries == len(rig.expected())


@pytest.mark.parametrize("layout", NEWEST)
@pytest.mark.parametrize("life", LIVES)
async def test_index_holds_what_the_engine_holds(layout: str, life: str) -> None:
    """Whatever happens on the way, nothing is missing and nothing is too much."""
    names = {"lora_name_from_event": True, "lora_adapter_names": "1=sql,2=chat"}
    async with fake_engine(layout=layout) as engine, producing(engine, **names) as rig:
        await follow(rig, LIVES[life])


async def test_number_that_no_replay_has() -> None:
    """A burnt number is given up, and what follows it counts."""
    async with fake_engine() as engine, producing(engine) as rig:
        await follow(
            rig, "[{do: serve, count: 64}, {do: skip}, {do: serve, start: 500, count: 64}]"
        )

        assert rig.producer.stats.sources[0].final_gaps == 1


@pytest.mark.parametrize("layout", ["vllm-0.20", "vllm-0.22", "vllm-0.33"])
async def test_groups(layout: str) -> None:
    """What a sliding window drops is no news about whole prefixes."""
    script = "[{do: serve, count: 64}, {do: serve, start: 500, count: 64}, {do: evict, blocks: 3}]"
    async with fake_engine(layout=layout, groups=2) as engine, producing(engine) as rig:
        await follow(rig, script)


async def test_ranks_of_one_replica() -> None:
    """A clear of one rank leaves what the others hold."""
    script = """
    - {do: serve, start: 1000, count: 64}
    - {do: serve, start: 1000, count: 96, rank: 1}
    - {do: serve, start: 2000, count: 64, rank: 2}
    - {do: clear, rank: 1}
    """
    async with fake_engine(ranks=3) as engine, producing(engine) as rig:
        await follow(rig, script)


async def test_late_producer_learns_the_past() -> None:
    """Everything published before somebody listened comes with the replay."""
    async with fake_engine() as engine:
        for step in parse_script(LIVES["copies"], "life"):
            await engine.play(step)
        async with producing(engine) as rig:
            await follow(rig, "[{do: serve, start: 7000, count: 16}]")


@pytest.mark.parametrize("size", [1, 4, 32, 64, 24])
async def test_engine_blocks_of_other_sizes(size: int) -> None:
    """Sizes that divide one another lead to the same keys; others to none."""
    async with fake_engine(block_size_tokens=size) as engine, producing(engine) as rig:
        await follow(rig, "[{do: serve, count: 192}, {do: evict, blocks: 2}]")
        assert (rig.entries == 0) == (size == 24)


async def test_small_cache_under_load() -> None:
    """Hundreds of evictions later index and engine still agree."""
    async with fake_engine(cache_blocks=40) as engine, producing(engine) as rig:
        steps = [
            f"{{do: serve, start: {1000 * (number % 7)}, count: {16 * (1 + number % 11)}}}"
            for number in range(150)
        ]
        await follow(rig, f"[{', '.join(steps)}]")
