"""How a demo comes to rest: by progress, not by the clock."""

import asyncio

from inferencecache.app.demo import has_settled

STALL_S = 0.01


class Slow:
    """Settles after a number of looks at its progress; stands still after another."""

    def __init__(self, settles_after: int, stalls_after: int) -> None:
        self._settles_after = settles_after
        self._stalls_after = stalls_after
        self.looks = 0
        self._settled = asyncio.Event()

    async def settled(self) -> None:
        """Wait until it has."""
        await self._settled.wait()

    def progress(self) -> int:
        """Count the looks, up to where it stalls."""
        self.looks += 1
        if self.looks > self._settles_after:
            self._settled.set()
        return min(self.looks, self._stalls_after)


async def test_a_slow_machine_is_waited_for() -> None:
    """Five times the limit is no reason to give up while something moves."""
    slow = Slow(settles_after=5, stalls_after=99)

    assert await has_settled(slow, STALL_S)
    assert slow.looks == 6


async def test_what_stands_still_is_given_up() -> None:
    """One limit without any progress is the end."""
    slow = Slow(settles_after=99, stalls_after=3)

    assert not await has_settled(slow, STALL_S)
    assert slow.looks == 4
