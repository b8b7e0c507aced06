"""What went where: per endpoint the blocks of the prompts that the picker has sent to it.

Rules of this file
    1. A placing counts at once: as *expected* until the time that it is given, for endpoints whose
       engine will say itself what it holds, and as *learnt* for as long as nothing is heard of it
       again, for the others. The reader says which.
    2. A placing that is withdrawn takes along what no other placing has vouched for. It does not
       turn the clock back for the rest.
    3. An endpoint has so many stretches, all of them together have so many. Whichever was placed
       longest ago goes first, of one placing the deepest.

Example: ``a b c`` is placed at 1 s, ``a b d`` at 2 s and withdrawn. What is left is ``a b c``, of
which ``a b`` was last placed at 2 s. With room for two stretches, ``c`` would have gone first.
"""

from collections import OrderedDict, deque
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import islice

import msgspec

from inferencecache.picker.prefix.block_keys import KEY_BYTES
from inferencecache.picker.prefix.shelf import Shelf
from inferencecache.settings.picker_prefix import PickerPrefixSettings


class Placing(msgspec.Struct, eq=False):
    """One prompt at one endpoint, for as long as it can be withdrawn.

    Attributes:
        endpoint: Where.
        number: Later placings have larger ones.
        keys: Its stretches, 8 bytes each; none where too many can be withdrawn already.
    """

    endpoint: str
    number: int
    keys: bytes

    @property
    def stretches(self) -> int:
        """How many they are."""
        return len(self.keys) // KEY_BYTES


class PickedBlocks:
    """Remembers, bounded.

    Args:
        settings: How much, and for how long.

    Attributes:
        stretches: How many are remembered, of all endpoints.
        evicted: How many have gone because there was no room.
    """

    def __init__(self, settings: PickerPrefixSettings) -> None:
        self._shelf_max = min(settings.endpoint_blocks_max, settings.blocks_max)
        self._all_max = settings.blocks_max
        self._idle_ns = settings.idle_ns
        self._shelves: OrderedDict[str, Shelf] = OrderedDict()
        self._left: deque[Shelf] = deque()
        self._placings = 0
        self._withdrawable = 0
        self.stretches = 0
        self.evicted = 0

    @property
    def shelves(self) -> Mapping[str, Shelf]:
        """What each endpoint was sent that was sent anything, of this moment and later."""
        return self._shelves

    def place(self, endpoint: str, keys: bytes, now_ns: int, expected_ns: int) -> Placing:
        """Note that a prompt goes to *endpoint*.

        Args:
            endpoint: Where; the name of the candidate.
            keys: Its stretches in order, 8 bytes each; those beyond an endpoint's room are left
                out.
            now_ns: Monotonic time.
            expected_ns: Until when an engine that says what it holds is believed to hold them.

        Returns:
            To be settled or withdrawn, once.

        Complexity: O(runs), of those let go, too, and a comparison of the keys.
        """
        keys = keys[: self._shelf_max * KEY_BYTES]
        self._placings += 1
        placing = Placing(endpoint, self._placings, keys)
        if keys:
            shelf = self._shelves.setdefault(endpoint, Shelf())
            self._shelves.move_to_end(endpoint)
            self.stretches -= sum(shelf.drop(self.idle_since_ns(now_ns)))
            before = shelf.stretches
            expected_ns = min(expected_ns, now_ns + self._idle_ns)
            shelf.place(keys, now_ns, expected_ns, placing.number)
            self.stretches += shelf.stretches - before
            self._make_room(shelf)
        if self._withdrawable + placing.stretches > self._all_max:
            placing.keys = b""
        self._withdrawable += placing.stretches
        return placing

    def settle(self, placing: Placing) -> None:
        """Note that *placing* has come true; it cannot be withdrawn any more."""
        self._withdrawable -= placing.stretches
        placing.keys = b""

    def withdraw(self, placing: Placing) -> None:
        """Forget *placing*, and what nobody else vouches for.

        Complexity: O(its runs).
        """
        shelf = self._shelves.get(placing.endpoint)
        if shelf is not None:
            before = shelf.stretches
            shelf.withdraw(placing.keys, placing.number)
            self.stretches += shelf.stretches - before
            if not shelf.stretches:
                del self._shelves[placing.endpoint]
        self.settle(placing)

    def idle_since_ns(self, now_ns: int) -> int:
        """Return since when nobody must have placed what is forgotten by *now_ns*."""
        return now_ns - self._idle_ns

    def sweep(self, now_ns: int, runs_max: int) -> bool:
        """Let go of what was not placed for too long, and of what has left.

        Args:
            now_ns: Monotonic time.
            runs_max: At most so many runs of it; how long they are does not matter.

        Returns:
            Whether there may be more.

        Complexity: O(endpoints + runs let go).
        """
        room = runs_max
        while self._left and room:
            left = self._left[0]
            room -= sum(1 for _ in islice(left.drop(), room))
            if not left.stretches:
                self._left.popleft()
        idle_ns = self.idle_since_ns(now_ns)
        for endpoint, shelf in list(self._shelves.items()):
            gone = list(islice(shelf.drop(idle_ns), room))
            room -= len(gone)
            self.stretches -= sum(gone)
            if not shelf.stretches:
                del self._shelves[endpoint]
        return not room

    def retain(self, endpoints: AbstractSet[str]) -> None:
        """Forget what all but *endpoints* were sent; sweeps let go of it.

        Complexity: O(endpoints).
        """
        for endpoint in [name for name in self._shelves if name not in endpoints]:
            shelf = self._shelves.pop(endpoint)
            self.stretches -= shelf.stretches
            self._left.append(shelf)

    def _make_room(self, shelf: Shelf) -> None:
        while shelf.stretches > self._shelf_max:
            self._evict(shelf, shelf.stretches - self._shelf_max)
        while self.stretches > self._all_max:
            endpoint, oldest = next(iter(self._shelves.items()))
            self._evict(oldest, self.stretches - self._all_max)
            if not oldest.stretches:
                del self._shelves[endpoint]

    def _evict(self, shelf: Shelf, count: int) -> None:
        gone = shelf.evict(count)
        self.stretches -= gone
        self.evicted += gone
