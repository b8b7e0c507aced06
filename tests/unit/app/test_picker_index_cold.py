"""Another index is asked now and then whether it has anything at all."""

import asyncio

from inferencecache.app.picker_index_cold import IndexCold
from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.settings.picker_prefix import PickerIndexSettings

SETTINGS = PickerIndexSettings(cold_recheck_ns=NS_PER_S, cold_domains_max=2)


class Source:
    """An index that says what it is told to, once it may.

    Attributes:
        says: What it says.
        asked: Whom it was asked about, and for how many seconds.
        may_answer: Whether it answers.
    """

    def __init__(self) -> None:
        self.says: bool | None = True
        self.asked: list[tuple[str, str, float]] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def is_empty(self, tenant_id: str, model_id: str, timeout_s: float) -> bool | None:
        """Return what it says."""
        self.asked.append((tenant_id, model_id, timeout_s))
        await self.may_answer.wait()
        return self.says


class Rig:
    """A memory of what is cold over such a source."""

    def __init__(self) -> None:
        self.clock = ManualClock(10**18)
        self.source = Source()
        self.cold = IndexCold(SETTINGS, self.clock, self.source)

    async def is_cold(self, model_id: str = "m") -> bool:
        """Ask with a second to go."""
        return await self.cold.is_cold("t", model_id, self.clock.monotonic_ns() + NS_PER_S)


async def test_an_answer_holds_for_a_while() -> None:
    """Both kinds: an index is not asked at each Pick."""
    rig = Rig()
    assert [await rig.is_cold() for _ in range(3)] == [True] * 3
    assert rig.source.asked == [("t", "m", 1.0)]
    rig.source.says = False
    rig.clock.advance_ns(NS_PER_S - 1)
    assert await rig.is_cold()
    rig.clock.advance_ns(1)
    assert [await rig.is_cold() for _ in range(3)] == [False] * 3
    assert len(rig.source.asked) == 2


async def test_who_cannot_say_is_not_cold_and_is_not_asked_again_at_once() -> None:
    """A server without that call, or without an answer in time, is taken at its other word."""
    rig = Rig()
    rig.source.says = None
    assert [await rig.is_cold() for _ in range(3)] == [False] * 3
    assert len(rig.source.asked) == 1


async def test_picks_at_one_time_share_a_question() -> None:
    """And all of them its answer, though the one that asked goes away."""
    rig = Rig()
    rig.source.may_answer.clear()
    first, *others = [asyncio.create_task(rig.is_cold()) for _ in range(5)]
    while not rig.source.asked:
        await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    rig.source.may_answer.set()
    assert await asyncio.gather(*others) == [True] * 4
    assert len(rig.source.asked) == 1


async def test_it_is_bounded() -> None:
    """Two answers are kept, and two questions asked at one time."""
    rig = Rig()
    for model_id in ("a", "b", "c", "b", "a"):
        assert await rig.is_cold(model_id)
    assert [model_id for _, model_id, _ in rig.source.asked] == ["a", "b", "c", "a"]

    rig.clock.advance_ns(NS_PER_S)
    rig.source.may_answer.clear()
    asking = [asyncio.create_task(rig.is_cold(model_id)) for model_id in ("x", "y")]
    while len(rig.source.asked) < 6:
        await asyncio.sleep(0)
    assert not await rig.is_cold("z")
    rig.source.may_answer.set()
    await rig.cold.settle()
    assert await asyncio.gather(*asking) == [True, True]
