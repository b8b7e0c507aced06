"""How long a source is left alone before it is asked for everything once more."""

from typing import Final


class StartOverPauses:
    """Remembers when everything was asked for, and whether that was of use.

    A source that is asked on account of others is asked ever more rarely while what it brings fails
    anew: that withdraws the others' blocks, for which they are asked again, and so on for ever.

    Args:
        interval_ns: Shortest time between two requests.
        now_ns: Monotonic time; the first request may come at once.
    """

    def __init__(self, interval_ns: int, now_ns: int) -> None:
        self._interval_ns: Final = interval_ns
        self._asked_ns = now_ns - interval_ns
        self._useless_in_row = 0
        self._has_failed = False

    def may_ask(self, now_ns: int, *, for_others: bool) -> bool:
        """Tell whether the pause is over.

        Args:
            now_ns: Monotonic time.
            for_others: Whether others have failed; each request in a row that was of no use then
                doubles the pause.
        """
        pause_ns = self._interval_ns << (self._useless_in_row if for_others else 0)
        return now_ns >= self._asked_ns + pause_ns

    def asked(self, now_ns: int) -> None:
        """Note a request for everything."""
        self._useless_in_row = self._useless_in_row + 1 if self._has_failed else 0
        self._has_failed = False
        self._asked_ns = now_ns

    def failed(self) -> None:
        """Note that what came since the last request has failed, and nothing was asked for."""
        self._has_failed = True
