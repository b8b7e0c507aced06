"""What went where: per endpoint the blocks of the prompts that the picker has sent to it.

Theory of operation: a key stands for everything before it, so whoever was sent a stretch was sent
all stretches before it, no later. Every rule below keeps it so, and a match is the end of a binary
search.

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

from array import array
from collections import OrderedDict, deque
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from inferencecache.settings.picker_prefix import PickerPrefixSettings


class _Stretch:
    """One stretch at one endpoint.

    Attributes:
        placed_ns: When it was last placed.
        expected_ns: Until when it is to be believed of an engine that says what it holds.
        first: Number of the placing that brought it; earlier ones did not vouch for it.
        vouchers: Placings that vouch for it.
    """

    __slots__ = ("expected_ns", "first", "placed_ns", "vouchers")

    def __init__(self, placed_ns: int, expected_ns: int, first: int) -> None:
        self.placed_ns = placed_ns
        self.expected_ns = expected_ns
        self.first = first
        self.vouchers = 1


class Placing:
    """One prompt at one endpoint, for as long as it can be withdrawn.

    Attributes:
        endpoint: Where.
        number: Later placings have larger ones.
        keys: Its stretches; none where too many can be withdrawn already.
    """

    __slots__ = ("endpoint", "keys", "number")

    def __init__(self, endpoint: str, number: int, keys: Sequence[int]) -> None:
        self.endpoint = endpoint
        self.number = number
        self.keys = array("Q", keys)


Shelf = OrderedDict[int, _Stretch]
"""The stretches of an endpoint, the one placed longest ago first."""


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

    def place(self, endpoint: str, keys: Sequence[int], now_ns: int, expected_ns: int) -> Placing:
        """Note that a prompt goes to *endpoint*.

        Args:
            endpoint: Where; the name of the candidate.
            keys: Its stretches in order; those beyond an endpoint's room are left out.
            now_ns: Monotonic time.
            expected_ns: Until when an engine that says what it holds is believed to hold them.

        Returns:
            To be settled or withdrawn, once.

        Complexity: O(keys).
        """
        keys = keys[: self._shelf_max]
        self._placings += 1
        number = self._placings
        if keys:
            shelf = self._shelves.setdefault(endpoint, OrderedDict())
            self._shelves.move_to_end(endpoint)
            self._put(shelf, keys, now_ns, min(expected_ns, now_ns + self._idle_ns))
            self._make_room(shelf)
        if self._withdrawable + len(keys) > self._all_max:
            keys = ()
        self._withdrawable += len(keys)
        return Placing(endpoint, number, keys)

    def settle(self, placing: Placing) -> None:
        """Note that *placing* has come true; it cannot be withdrawn any more."""
        self._withdrawable -= len(placing.keys)
        placing.keys = array("Q")

    def withdraw(self, placing: Placing) -> None:
        """Forget *placing*, and what nobody else vouches for.

        Complexity: O(its keys).
        """
        shelf = self._shelves.get(placing.endpoint)
        if shelf is not None:
            for key in placing.keys:
                stretch = shelf.get(key)
                if stretch is None or stretch.first > placing.number:
                    continue
                stretch.vouchers -= 1
                if not stretch.vouchers:
                    del shelf[key]
                    self.stretches -= 1
            if not shelf:
                del self._shelves[placing.endpoint]
        self.settle(placing)

    def held(
        self, endpoint: str, keys: Sequence[int], now_ns: int, *, is_expected: bool = False
    ) -> int:
        """Return how many leading *keys* an endpoint was sent and is believed to hold.

        Args:
            endpoint: The candidate's name.
            keys: Stretches of a prompt in order.
            now_ns: Monotonic time.
            is_expected: Whether only what is expected counts, since the engine says itself what it
                holds; else everything that is not forgotten.

        Complexity: O(log keys).
        """
        shelf = self._shelves.get(endpoint)
        if shelf is None or not keys:
            return 0
        get, forgotten_ns = shelf.get, now_ns - self._idle_ns
        held, at, end = 0, 0, len(keys)
        while held < end:
            stretch = get(keys[at])
            if stretch is not None and (
                stretch.expected_ns > now_ns if is_expected else stretch.placed_ns > forgotten_ns
            ):
                held = at + 1
            elif at:
                end = at
            else:
                return 0
            at = (held + end) >> 1
        return held

    def sweep(self, now_ns: int, stretches_max: int) -> bool:
        """Let go of what was not placed for too long, and of what has left.

        Args:
            now_ns: Monotonic time.
            stretches_max: At most so much of it.

        Returns:
            Whether there may be more.

        Complexity: O(endpoints + stretches let go).
        """
        room = stretches_max
        while self._left and room:
            left = self._left[0]
            while left and room:
                left.popitem(last=False)
                room -= 1
            if not left:
                self._left.popleft()
        idle_ns = now_ns - self._idle_ns
        for endpoint, shelf in list(self._shelves.items()):
            while shelf and room and next(iter(shelf.values())).placed_ns <= idle_ns:
                shelf.popitem(last=False)
                self.stretches -= 1
                room -= 1
            if not shelf:
                del self._shelves[endpoint]
        return not room

    def retain(self, endpoints: AbstractSet[str]) -> None:
        """Forget what all but *endpoints* were sent; sweeps let go of it.

        Complexity: O(endpoints).
        """
        for endpoint in [name for name in self._shelves if name not in endpoints]:
            shelf = self._shelves.pop(endpoint)
            self.stretches -= len(shelf)
            self._left.append(shelf)

    def _put(self, shelf: Shelf, keys: Sequence[int], now_ns: int, expected_ns: int) -> None:
        """Place *keys*, the deepest first, so that it is the first to go."""
        get, to_end, number = shelf.get, shelf.move_to_end, self._placings
        idle_ns, before = now_ns - self._idle_ns, len(shelf)
        for key in reversed(keys):
            stretch = get(key)
            if stretch is None:
                shelf[key] = _Stretch(now_ns, expected_ns, number)
                continue
            if stretch.placed_ns <= idle_ns:
                shelf[key] = _Stretch(now_ns, expected_ns, number)
            else:
                stretch.placed_ns = now_ns
                stretch.vouchers += 1
                if stretch.expected_ns < expected_ns:  # noqa: PLR1730 - a call takes as long as all else
                    stretch.expected_ns = expected_ns
            to_end(key)
        self.stretches += len(shelf) - before

    def _make_room(self, shelf: Shelf) -> None:
        while len(shelf) > self._shelf_max:
            self._evict(shelf)
        while self.stretches > self._all_max:
            endpoint, oldest = next(iter(self._shelves.items()))
            self._evict(oldest)
            if not oldest:
                del self._shelves[endpoint]

    def _evict(self, shelf: Shelf) -> None:
        shelf.popitem(last=False)
        self.stretches -= 1
        self.evicted += 1
