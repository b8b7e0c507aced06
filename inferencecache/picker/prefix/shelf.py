"""The stretches that one endpoint was sent, in runs.

Theory of operation: a key stands for everything before it, so what went to an endpoint is a tree of
keys, of which a placing is a path from the root. All keys of a run were placed, and vouched for, by
the same placings; so a placing touches runs, however long they are. A run is found by its first
key, and compared with a prompt as bytes. Where a placing ends, or leaves a run, that is split.

Rules of this file
    1. Runs are in the order in which they were placed, of one placing the deepest first: so nothing
       stands behind the first of them.
    2. A run that is split keeps its deeper part, which keeps its place in the order; the other part
       is new, and goes to the end with the placing that splits.

Example: ``abc`` is placed, then ``abd``. ``abc`` becomes ``c``, before which ``ab`` was placed
again; ``d`` is new. In order: ``c``, ``d``, ``ab``.
"""

from collections import OrderedDict
from collections.abc import Iterator
from math import inf

from inferencecache.picker.prefix.block_keys import KEY_BYTES


class Run:
    """Stretches, one after the other, of which all is the same.

    Attributes:
        keys: Theirs, 8 bytes each; at least one.
        placed_ns: When they were last placed.
        expected_ns: Until when they are to be believed of an engine that says what it holds.
        first: Number of the placing that brought them; earlier ones did not vouch for them.
        vouchers: Placings that vouch for them.
    """

    __slots__ = ("expected_ns", "first", "keys", "placed_ns", "vouchers")

    def __init__(self, keys: bytes, placed_ns: int, expected_ns: int, first: int) -> None:
        self.keys = keys
        self.placed_ns = placed_ns
        self.expected_ns = expected_ns
        self.first = first
        self.vouchers = 1

    def upper(self, size: int) -> "Run":
        """Return a run of the first *size* bytes of this one's keys."""
        upper = Run(self.keys[:size], self.placed_ns, self.expected_ns, self.first)
        upper.vouchers = self.vouchers
        return upper


class Shelf:
    """What one endpoint was sent.

    Attributes:
        stretches: How many.
    """

    __slots__ = ("_order", "_starts", "stretches")

    def __init__(self) -> None:
        self._starts: dict[bytes, Run] = {}
        self._order: OrderedDict[Run, None] = OrderedDict()
        self.stretches = 0

    def place(self, keys: bytes, now_ns: int, expected_ns: int, number: int) -> None:
        """Note that *keys* are placed.

        Args:
            keys: Of a prompt in order, 8 bytes each.
            now_ns: Monotonic time.
            expected_ns: Until when they are expected.
            number: Of the placing.

        Complexity: O(runs) and a comparison of the keys.
        """
        path: list[Run] = []
        at, end = 0, len(keys)
        while at < end:
            run = self._starts.get(keys[at : at + KEY_BYTES])
            if run is None:
                run = self._add(Run(keys[at:], now_ns, expected_ns, number))
                self.stretches += len(run.keys) // KEY_BYTES
            else:
                if not keys.startswith(run.keys, at):
                    run = self._split(run, _shared(run.keys, keys, at))
                run.placed_ns = now_ns
                run.vouchers += 1
                run.expected_ns = max(run.expected_ns, expected_ns)
            path.append(run)
            at += len(run.keys)
        to_end = self._order.move_to_end
        for run in reversed(path):
            to_end(run)

    def withdraw(self, keys: bytes, number: int) -> None:
        """Take back what the placing *number* of *keys* vouches for, and nobody else.

        Complexity: O(runs).
        """
        at, end = 0, len(keys)
        while at < end:
            run = self._starts.get(keys[at : at + KEY_BYTES])
            if run is None or run.first > number:
                return  # whatever is deeper has gone before, or came later
            run.vouchers -= 1
            at += len(run.keys)
            if not run.vouchers:
                self._remove(run)

    def held(self, keys: bytes, alive_ns: int, *, is_expected: bool) -> int:
        """Return how many leading *keys* are here.

        Args:
            keys: Of a prompt in order, 8 bytes each.
            alive_ns: Only those count that are expected beyond, or were placed after that time.
            is_expected: Which of both.

        Complexity: O(runs) and a comparison of the keys.
        """
        starts = self._starts
        at, end = 0, len(keys)
        while at < end:
            run = starts.get(keys[at : at + KEY_BYTES])
            if run is None or (run.expected_ns if is_expected else run.placed_ns) <= alive_ns:
                break
            if not keys.startswith(run.keys, at):
                at += _shared(run.keys, keys, at)
                break
            at += len(run.keys)
        return at // KEY_BYTES

    def evict(self, count: int) -> int:
        """Let go of up to *count* stretches, of the run placed longest ago the deepest.

        Returns:
            Of how many; 0 if there are none.

        Complexity: O(1) and a copy of what is left of the run.
        """
        for run in self._order:
            has = len(run.keys) // KEY_BYTES
            if has <= count:
                self._remove(run)
                return has
            run.keys = run.keys[: -count * KEY_BYTES]
            self.stretches -= count
            return count
        return 0

    def drop(self, until_ns: float = inf) -> Iterator[int]:
        """Let go, run by run, of what was last placed by a time; yields how many stretches."""
        while self._order:
            run = next(iter(self._order))
            if run.placed_ns > until_ns:
                return
            self._remove(run)
            yield len(run.keys) // KEY_BYTES

    def _add(self, run: Run) -> Run:
        self._starts[run.keys[:KEY_BYTES]] = run
        self._order[run] = None
        return run

    def _remove(self, run: Run) -> None:
        del self._starts[run.keys[:KEY_BYTES]]
        del self._order[run]
        self.stretches -= len(run.keys) // KEY_BYTES

    def _split(self, run: Run, size: int) -> Run:
        """Split *run* behind *size* bytes of its keys; returns the part before that."""
        upper = self._add(run.upper(size))
        run.keys = run.keys[size:]
        self._starts[run.keys[:KEY_BYTES]] = run
        return upper


def _shared(run: bytes, keys: bytes, at: int) -> int:
    """Return how many bytes of whole keys *run* shares with *keys* from *at* on; one key or more.

    Complexity: O(log n) comparisons.
    """
    least, most = 1, min(len(run), len(keys) - at) // KEY_BYTES
    while least < most:
        middle = (least + most + 1) // 2
        if keys.startswith(run[: middle * KEY_BYTES], at):
            least = middle
        else:
            most = middle - 1
    return least * KEY_BYTES
