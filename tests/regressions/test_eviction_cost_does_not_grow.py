"""Evicting a block costs the same whether three hundred or three thousand chains are held.

Evictions arrive in streams exactly when memory is tight; one that walks all keys stalls lookups.
"""

from field_rig import FieldRig
from work_counter import lines_run

from inferencecache.fingerprint import chain

FEW, MANY = 300, 3_000
"""Chains of 32 blocks; with either a partition is a big one, whose blocks are spread over parts."""

SLACK_LINES = 5
"""A branch may go the other way; a walk over ten times as much would be thousands."""


def filled_rig(chains: int) -> tuple[FieldRig, list[bytes]]:
    """Return a rig that holds *chains* chains of 32 blocks on four replicas, and one of them."""
    rig = FieldRig()
    for number in range(chains):
        blocks = chain(range(number * 512, (number + 1) * 512), 16)
        rig.report(f"r{number % 4}", blocks)
    return rig, chain(range(512), 16)


def eviction_lines(chains: int, position: int) -> int:
    """Return the work of evicting one block with *chains* chains held."""
    rig, blocks = filled_rig(chains)
    lines = lines_run(lambda: rig.evict("r0", blocks[position]))
    rig.index.check_invariants()
    assert rig.matched(blocks).get("r0", 0) == position * 16
    return lines


def test_evicting_a_tail_block_takes_constant_work() -> None:
    """Ten times as many chains make no difference."""
    assert eviction_lines(MANY, 31) <= eviction_lines(FEW, 31) + SLACK_LINES


def test_evicting_a_middle_block_takes_constant_work() -> None:
    """Cutting a run in two does not look at other runs."""
    assert eviction_lines(MANY, 16) <= eviction_lines(FEW, 16) + SLACK_LINES


def test_a_new_block_at_the_cap_takes_constant_work() -> None:
    """Finding the victim needs no sort over what is held."""
    lines = []
    for chains in (FEW, MANY):
        rig = FieldRig(max_entries=chains * 32)
        for number in range(chains):
            rig.report(f"r{number % 4}", chain(range(number * 512, (number + 1) * 512), 16))
        newcomer = chain(range(10**9, 10**9 + 16), 16)
        lines.append(lines_run(lambda rig=rig, newcomer=newcomer: rig.report("r0", newcomer)))
        assert rig.index.entries == chains * 32

    assert lines[1] <= lines[0] + SLACK_LINES


def test_an_idle_sweep_takes_constant_work() -> None:
    """With nothing due, a sweep does not look at what is held."""
    lines = []
    for chains in (FEW, MANY):
        rig, _ = filled_rig(chains)
        lines.append(lines_run(rig.target.sweep))

    assert lines[1] <= lines[0] + SLACK_LINES
