"""Now and then send a request where nobody has been for long, so that evidence does not end.

Rules of this file: a share of Picks falls due, by draws that are handed in. Requests that can wait
take what is due at once; one that cannot takes it only where none of the others has come before
the next falls due. So where there is traffic that can wait, it explores; where not, as many do.
"""

from collections.abc import Callable, Hashable

from inferencecache.picker.qos import QosClass


class Exploration:
    """Says whose turn it is to explore.

    Args:
        share: Of Picks, from 0 to 1.
        draw: Draws a number from 0 up to, but not including, 1.
    """

    def __init__(self, share: float, draw: Callable[[], float]) -> None:
        self._share = share
        self._draw = draw
        self._due: dict[Hashable, int] = {}

    def is_due(self, where: Hashable, qos: QosClass) -> bool:
        """Return whether a Pick explores, and take note of it.

        Args:
            where: What it picks from; each such place is explored by itself.
            qos: How long its request can wait.
        """
        if not self._share:
            return False
        due = self._due.pop(where, 0) + (self._draw() < self._share)
        is_taken = due > (1 if qos is QosClass.INTERACTIVE else 0)
        if due > is_taken:
            self._due[where] = due - is_taken
        return is_taken

    def forget(self) -> None:
        """Let go of what is due, because places may be gone."""
        self._due.clear()
