"""Full collections come when asked for, and young garbage goes as ever."""

import asyncio
import gc
from collections.abc import Iterator

import pytest

from inferencecache.app.collector import calm_collector, collect_rarely


class Knot:
    """Refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.itself = self


def knots() -> int:
    """Count what is left of them."""
    return sum(isinstance(item, Knot) for item in gc.get_objects())


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    """Leave the collector as it was."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_full_collections_stop_and_young_ones_go_on() -> None:
    """However much comes in and stays, the oldest generation is left alone."""
    calm_collector()
    full = gc.get_stats()[2]["collections"]
    young = gc.get_stats()[0]["collections"]
    kept = [[number] for number in range(200_000)]

    assert len(kept) == 200_000
    assert gc.get_stats()[2]["collections"] == full
    assert gc.get_stats()[0]["collections"] > young


def test_what_stays_is_soon_left_alone() -> None:
    """A dictionary that grows while few objects are made is visited when it is small, not later."""
    calm_collector()
    growing = {0: [0]}
    young, _, _ = gc.get_threshold()
    kept = [[number] for number in range(4 * young)]

    assert len(kept) == 4 * young
    assert not any(item is growing for item in gc.get_objects(0) + gc.get_objects(1))


def test_young_garbage_is_collected() -> None:
    """What libraries leave behind in cycles does not pile up."""
    calm_collector()
    for _ in range(20_000):
        Knot()

    assert knots() < 10_000


async def test_a_rare_collection_takes_old_garbage() -> None:
    """What outlived the young generations goes with the next full collection."""
    calm_collector()
    Knot()
    gc.collect(1)
    collected = asyncio.Event()

    def note(phase: str, found: dict[str, int]) -> None:
        if phase == "stop" and found["generation"] == 2:
            collected.set()

    gc.callbacks.append(note)
    collecting = asyncio.create_task(collect_rarely(1))
    await collected.wait()
    collecting.cancel()
    gc.callbacks.remove(note)

    assert knots() == 0


async def test_no_interval_means_no_collection() -> None:
    """The work ends at once."""
    calm_collector()  # or one of its own may come in between
    full = gc.get_stats()[2]["collections"]
    await collect_rarely(0)

    assert gc.get_stats()[2]["collections"] == full
