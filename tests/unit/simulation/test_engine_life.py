"""A simulated engine announces what it does, and knows what must follow."""

import pytest

from inferencecache.fingerprint import prefix_hashes
from inferencecache.simulation import (
    EngineEvent,
    EngineLife,
    EnginePrompt,
    LifeRules,
    RemovedBlocks,
    StoredBlocks,
)
from inferencecache.types import CacheTier


def prompt(start: int, blocks: int, size: int = 16, **more: object) -> EnginePrompt:
    """Return a prompt of full blocks."""
    return EnginePrompt(tokens=range(start, start + blocks * size), **more)  # type: ignore[arg-type]


def keys(life: EngineLife) -> dict[int, CacheTier]:
    """Return the expected keys with their tiers."""
    return {key.key: key.tier for key in life.expected()}


def removals(events: list[EngineEvent]) -> int:
    """Return how many removals there are."""
    return sum(isinstance(event, RemovedBlocks) for event in events)


def test_hit_says_nothing() -> None:
    """Only what was not cached is announced, as the continuation of what was."""
    life = EngineLife(LifeRules())
    first, second = prompt(0, 4), prompt(0, 6)
    (stored,) = life.serve(first)
    (more,) = life.serve(second)

    assert isinstance(stored, StoredBlocks)
    assert isinstance(more, StoredBlocks)
    assert stored.parent is None
    assert more.parent == stored.labels[-1]
    assert list(more.tokens) == list(range(64, 96))
    assert life.serve(second) == []
    assert life.hit_tokens == 64 + 96
    assert set(keys(life)) == set(prefix_hashes(list(range(96)), 16))


def test_room_is_made_from_the_deepest_of_the_oldest() -> None:
    """A full cache drops leaves first, and never what the prompt itself uses."""
    life = EngineLife(LifeRules(cache_blocks=3))
    life.serve(prompt(0, 3))
    events = life.serve(EnginePrompt(tokens=[*range(32), *range(100, 116)]))

    assert removals(events) == 1
    assert set(keys(life)) == {
        *prefix_hashes(list(range(32)), 16),
        prefix_hashes([*range(32), *range(100, 116)], 16)[2],
    }


def test_prompt_longer_than_the_cache() -> None:
    """Only its head is kept."""
    life = EngineLife(LifeRules(cache_blocks=2))
    life.serve(prompt(0, 5))

    assert set(keys(life)) == set(prefix_hashes(list(range(32)), 16))
    assert life.usage_ratio == 1.0


def test_copies_go_one_by_one() -> None:
    """A block is held until its last copy is gone."""
    life = EngineLife(LifeRules())
    life.serve(prompt(0, 1))
    life.copy(prompt(0, 1))

    assert removals(life.remove(prompt(0, 1), "GPU", 0)) == 1
    assert len(keys(life)) == 1
    assert removals(life.remove(prompt(0, 1), "GPU", 0)) == 1
    assert keys(life) == {}
    assert life.remove(prompt(0, 1), "GPU", 0) == []
    assert life.copy(prompt(0, 1)) == []


def test_eviction_takes_all_copies() -> None:
    """Whoever makes room gives up the block."""
    life = EngineLife(LifeRules())
    life.serve(prompt(0, 1))
    life.copy(prompt(0, 1))

    assert removals(life.evict(1)) == 2
    assert keys(life) == {}


def test_offloaded_block_outlives_the_gpu() -> None:
    """It moves from the first tier to the second, and goes with its last copy."""
    life = EngineLife(LifeRules())
    life.serve(prompt(0, 2))
    (move,) = life.offload(prompt(0, 2), "CPU")
    life.remove(prompt(0, 2), "GPU", 1)

    assert isinstance(move, StoredBlocks)
    assert (move.block_size_tokens, list(move.tokens), move.parent) == (0, [], None)
    first, second = prefix_hashes(list(range(32)), 16)
    assert keys(life) == {first: CacheTier.T1, second: CacheTier.T2}
    life.remove(prompt(0, 2), "CPU", 1)
    assert keys(life) == {first: CacheTier.T1}


def test_moves_with_tokens() -> None:
    """Some engines describe what they offload."""
    life = EngineLife(LifeRules(moves_carry_tokens=True))
    life.serve(prompt(0, 2))
    (move,) = life.offload(prompt(0, 2), "CPU_PINNED")

    assert isinstance(move, StoredBlocks)
    assert list(move.tokens) == list(range(32))
    assert life.offload(prompt(500, 1), "CPU") == []


def test_salted_prompts_have_no_keys() -> None:
    """Their tokens do not say what is in the blocks."""
    life = EngineLife(LifeRules())
    life.serve(prompt(0, 2, salt="x"))

    assert keys(life) == {}


def test_adapters_have_partitions_of_their_own() -> None:
    """Equal tokens give equal keys under the adapter's name, and other labels."""
    life = EngineLife(LifeRules())
    base, adapted = prompt(0, 1), prompt(0, 1, lora_id=1, lora_name="sql")
    life.serve(base)
    life.serve(adapted)

    assert {(key.adapter_id, key.key) for key in life.expected()} == {
        (name, prefix_hashes(list(range(16)), 16)[0]) for name in ("", "sql")
    }
    assert life.labels(base) != life.labels(adapted)


@pytest.mark.parametrize(("size", "blocks"), [(1, 64), (4, 16), (16, 4), (32, 2), (64, 1)])
def test_engine_blocks_of_other_sizes(size: int, blocks: int) -> None:
    """Keys depend on tokens alone while one size divides the other."""
    life = EngineLife(LifeRules(block_size_tokens=size))
    life.serve(prompt(0, blocks, size))

    assert set(keys(life)) == set(prefix_hashes(list(range(64)), 16))


def test_key_needs_all_its_pages() -> None:
    """A page that goes takes the key of its block with it."""
    life = EngineLife(LifeRules(block_size_tokens=4))
    life.serve(prompt(0, 8, 4))
    life.remove(prompt(0, 7, 4), "GPU", 6)

    assert set(keys(life)) == set(prefix_hashes(list(range(16)), 16))


def test_sizes_that_do_not_divide() -> None:
    """There are no keys, since no index block ends with an engine block."""
    life = EngineLife(LifeRules(block_size_tokens=24))
    life.serve(prompt(0, 2, 24))

    assert keys(life) == {}


def test_groups_are_announced_each() -> None:
    """The same blocks appear once per group, and so do their removals."""
    life = EngineLife(LifeRules(groups=3))
    events = life.serve(prompt(0, 1))

    kinds = [event.kind for event in events if isinstance(event, StoredBlocks)]
    assert kinds == ["full_attention", "sliding_window", "sliding_window"]
    assert removals(life.evict(1)) == 3


def test_restart_forgets_and_relabels() -> None:
    """The same prompt has other labels and the same keys in the next life."""
    life = EngineLife(LifeRules())
    life.serve(prompt(0, 1))
    before, labels = keys(life), life.labels(prompt(0, 1))
    life.restart()

    assert keys(life) == {}
    assert life.labels(prompt(0, 1)) != labels
    life.serve(prompt(0, 1))
    assert keys(life) == before


def test_clear_drops_everything() -> None:
    """One event stands for all blocks."""
    life = EngineLife(LifeRules())
    life.serve(prompt(0, 3))

    assert len(life.clear()) == 1
    assert keys(life) == {}
