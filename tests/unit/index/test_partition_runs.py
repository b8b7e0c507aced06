"""Runs are cut, joined and shrunk as the partition's worked example shows."""

from index_driver import IndexDriver

from inferencecache.index import EventType

BLOCKS = [b"h1", b"h2", b"h3", b"h4"]


def runs(driver: IndexDriver) -> list[tuple[list[bytes], dict[str, int]]]:
    """Return the runs in chain order: their blocks, and stamps by replica."""
    state = driver.index._ledger.tenants["t"].models["m"].scopes["vllm"].partitions[""]
    found = dict.fromkeys(filter(None, map(state.run_of.get, BLOCKS)))
    return [
        (list(run.hashes()), {w.replica_id: h.last_seen_ns for w, h in run.holds.items()})
        for run in found
    ]


def test_worked_example_of_the_partition(driver: IndexDriver) -> None:
    """The docstring's example, step by step."""
    driver.report("A", BLOCKS, 10)
    assert runs(driver) == [(BLOCKS, {"A": 10})]

    driver.report("B", BLOCKS[:2], 12)
    assert runs(driver) == [(BLOCKS[:2], {"A": 10, "B": 12}), (BLOCKS[2:], {"A": 10})]

    driver.report("A", BLOCKS, 20)
    assert runs(driver) == [(BLOCKS[:2], {"A": 20, "B": 12}), (BLOCKS[2:], {"A": 20})]

    driver.event(EventType.PREFIX_EVICTED, "A", 21, b"h4")
    assert runs(driver) == [(BLOCKS[:2], {"A": 20, "B": 12}), ([b"h3"], {"A": 20})]

    driver.event(EventType.PREFIX_EVICTED, "B", 22, b"h2")
    assert runs(driver) == [([b"h1"], {"A": 20, "B": 12}), ([b"h2", b"h3"], {"A": 20})]


def test_eviction_from_the_tail_of_a_shared_run_does_not_fragment(driver: IndexDriver) -> None:
    """A replica that evicts a shared chain from its end leaves two runs, not one per block."""
    driver.report("A", BLOCKS, 10)
    driver.report("B", BLOCKS, 10)

    for block in reversed(BLOCKS[1:]):
        driver.event(EventType.PREFIX_EVICTED, "A", 11, block)

    assert runs(driver) == [([b"h1"], {"A": 10, "B": 10}), (BLOCKS[1:], {"B": 10})]


def test_refresh_joins_what_became_alike(driver: IndexDriver) -> None:
    """Parts reported at different times become one run when reported together."""
    driver.report("A", BLOCKS[:2], 10)
    driver.report("A", BLOCKS, 11)

    assert runs(driver) == [(BLOCKS, {"A": 11})]


def test_eviction_in_the_middle_keeps_both_sides(driver: IndexDriver) -> None:
    """Blocks around an evicted one stay, and a match ends before the gap."""
    driver.report("A", BLOCKS, 10)
    driver.event(EventType.PREFIX_EVICTED, "A", 11, b"h2")

    assert runs(driver) == [([b"h1"], {"A": 10}), (BLOCKS[2:], {"A": 10})]
    assert driver.depths(BLOCKS, 12) == {"A": 1}
    assert driver.depths(BLOCKS[2:], 12) == {"A": 2}


def test_hashes_of_other_lengths_never_match_by_their_join(driver: IndexDriver) -> None:
    """[ab, cd] and [abc, d] are different chains."""
    driver.report("A", [b"ab", b"cd", b"ef"], 10)

    assert driver.depths([b"ab", b"cde", b"f"], 11) == {"A": 1}
    assert driver.depths([b"abc", b"d"], 11) == {}
    assert driver.depths([b"ab", b"cd", b"ef"], 11) == {"A": 3}


def test_hashes_of_several_widths_each_share_runs(driver: IndexDriver) -> None:
    """Whoever reports first does not decide how the others are stored."""
    wide = [b"w" * 31 + bytes((number,)) for number in range(4)]
    driver.report("A", wide, 10)
    driver.report("B", BLOCKS, 11)
    partition = driver.index._ledger.tenants["t"].models["m"].scopes["vllm"].partitions[""]

    assert len(partition.run_of.runs()) == 2
    assert driver.depths(wide, 12) == {"A": 4}
    assert driver.depths(BLOCKS, 12) == {"B": 4}
    assert driver.depths([*BLOCKS, *wide], 12) == {"B": 4}
