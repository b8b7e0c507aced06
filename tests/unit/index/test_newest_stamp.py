"""What a replica was last seen with follows what it still holds, and never what has gone."""

import pytest
from index_driver import IndexDriver

from inferencecache.index import EventType

OLD, NEW = [b"h1", b"h2"], [b"n1"]


def last_seen_ns(driver: IndexDriver) -> int | None:
    """Return what the snapshot says of the replica."""
    (replica,) = driver.index.snapshot().replicas
    return replica.last_event_ns


@pytest.fixture
def held(driver: IndexDriver) -> IndexDriver:
    """Return an index in which one replica holds an old chain and a new block."""
    driver.report("A", OLD, 10)
    driver.report("A", NEW, 20)
    assert last_seen_ns(driver) == 20
    return driver


def test_what_is_left_counts_once_the_newest_is_gone(held: IndexDriver) -> None:
    """Whatever was asked before."""
    held.event(EventType.PREFIX_EVICTED, "A", 21, NEW[0])
    assert last_seen_ns(held) == 10


def test_what_went_and_was_not_the_newest_changes_nothing(held: IndexDriver) -> None:
    """Nor does a later report that is stamped before it."""
    held.event(EventType.PREFIX_EVICTED, "A", 21, OLD[1])
    held.report("A", OLD, 22, stamp=15)
    assert last_seen_ns(held) == 20


def test_a_block_that_is_reported_as_older_is_older(held: IndexDriver) -> None:
    """Its hold moves to the stamp of the report, and nothing else is as new as it was."""
    held.report("A", NEW, 22, stamp=12)
    assert last_seen_ns(held) == 12


def test_of_two_that_are_the_newest_one_may_go(held: IndexDriver) -> None:
    """The other one is as new."""
    held.report("A", [b"m1"], 20)
    held.event(EventType.PREFIX_EVICTED, "A", 21, NEW[0])
    assert last_seen_ns(held) == 20
    held.event(EventType.PREFIX_EVICTED, "A", 21, b"m1")
    assert last_seen_ns(held) == 10
