"""Everything one group of blocks holds, as runs to be reported again."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from inferencecache.events.block_group import BlockGroup
from inferencecache.events.blocks import Block
from inferencecache.events.key_table import KeyTable
from inferencecache.events.mediums import (
    GPU_TIER,
    NOWHERE,
    is_inferred_only,
    is_saturated,
    tier_of,
)
from inferencecache.events.operations import StoreRun
from inferencecache.events.token_packing import TOKEN_BYTES
from inferencecache.settings.producer import MapperSettings
from inferencecache.types import CacheTier

RUN_KEYS_MAX = 4_096
STEP_BLOCKS = 4_096


@dataclass(slots=True)
class _OpenRun:
    """A run that may still grow."""

    adapter_id: str
    tier: CacheTier
    parent_key: int | None
    first_token_count: int
    keys: list[int]

    def continues_with(self, block: Block, tier: CacheTier) -> bool:
        return (
            block.parent_chain == self.keys[-1]
            and tier == self.tier
            and block.adapter_id == self.adapter_id
            and len(self.keys) + len(block.keys) <= RUN_KEYS_MAX
        )

    def close(self) -> StoreRun:
        return StoreRun(
            adapter_id=self.adapter_id,
            tier=self.tier,
            keys=self.keys,
            parent_key=self.parent_key,
            first_token_count=self.first_token_count,
            is_fresh=False,
        )


def live_runs(
    group: BlockGroup, keys: KeyTable, settings: MapperSettings, *, include_doubtful: bool
) -> Iterator[tuple[StoreRun, ...]]:
    """Yield the keys of *group* as runs along their prompts, step by step.

    Blocks that go while the caller works are skipped; a block below the best tier of its key is
    left to the holder of that tier.

    Complexity:
        A step looks at :data:`STEP_BLOCKS` blocks at most, and has no run if none of them has
        anything to report.
    """
    certain_tier = partial(_certain_tier, keys, group, settings.copies_max)
    tier_of_block = partial(_reported_tier, keys) if include_doubtful else certain_tier
    run: _OpenRun | None = None
    apart: list[StoreRun] = []
    blocks, looked_at = group.blocks, 0
    for engine_hash, due in blocks.present():
        block, tier = due, tier_of_block(due)
        is_over = run is not None and (tier is None or not run.continues_with(block, tier))
        if is_over or looked_at >= STEP_BLOCKS:
            yield _closed(apart, run)
            run, apart, looked_at = None, [], 0
            if group.blocks is not blocks:
                return  # cleared meanwhile
            now = blocks.look(engine_hash)
            if now is None or now.stretch is not block.stretch:
                continue
            block, tier = now, tier_of_block(now)
        looked_at += 1
        if tier is NOWHERE:
            apart += _keys_apart(block, keys, settings.block_size_tokens)
        elif tier is not None:
            run = run or _open_run(block, tier, settings.block_size_tokens)
            run.keys.extend(block.keys)
    if apart or run is not None:
        yield _closed(apart, run)


def _closed(apart: list[StoreRun], run: _OpenRun | None) -> tuple[StoreRun, ...]:
    return tuple(apart) if run is None else (*apart, run.close())


def _reported_tier(keys: KeyTable, block: Block) -> CacheTier | None:
    """Return the tier a block's keys are reported at; None if it has none to report.

    ``NOWHERE`` if only some of its keys have nobody better to report them.
    """
    if not block.holding or (block.detail is not None and not block.detail.keys):
        return None
    tier = tier_of(block.holding)
    if tier is GPU_TIER:
        return tier
    tiers = {keys.tier(block.adapter_id, key) for key in block.keys}
    if tier not in tiers:
        return None
    return tier if len(tiers) == 1 else NOWHERE


def _keys_apart(block: Block, keys: KeyTable, index_size: int) -> list[StoreRun]:
    """Return those keys of a block that nobody holds better, each as a run of its own."""
    tier, before, runs = tier_of(block.holding), block.parent_chain, list[StoreRun]()
    count = _open_run(block, tier, index_size).first_token_count
    for key in block.keys:
        if keys.tier(block.adapter_id, key) is tier:
            runs.append(StoreRun(block.adapter_id, tier, [key], before, count, is_fresh=False))
        before, count = key, count + index_size
    return runs


def _certain_tier(
    keys: KeyTable, group: BlockGroup, copies_max: int, block: Block
) -> CacheTier | None:
    """Return what :func:`_reported_tier` does, None for a block that may be gone unnoticed."""
    if block.stretch.number < group.certain_from or _is_doubtful(block, copies_max):
        return None
    return _reported_tier(keys, block)


def _open_run(block: Block, tier: CacheTier, index_size: int) -> _OpenRun:
    boundary = block.tokens - len(block.tail) // TOKEN_BYTES
    first = boundary - (len(block.keys) - 1) * index_size
    return _OpenRun(block.adapter_id, tier, block.parent_chain, first, [])


def _is_doubtful(block: Block, copies_max: int) -> bool:
    if block.holding == 1 and copies_max > 1:
        return False
    return is_inferred_only(block.holding) or is_saturated(block.holding, copies_max)
