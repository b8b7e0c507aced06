"""The failures of one subject, and whether it may be picked."""

from enum import StrEnum

from inferencecache.picker.choosing.suppression.subject import FailureKind
from inferencecache.settings.picker_choice import PickerSuppressionSettings


class Standing(StrEnum):
    """Whether something may be picked."""

    CLEAR = "clear"
    RESTING = "resting"
    """It said that it was busy a moment ago."""
    SUPPRESSED = "suppressed"
    """It failed again and again."""
    PROBING = "probing"
    """Its time is over, and one request is trying it."""
    DUE = "due"
    """Its time is over; the next request tries it."""


_PICKABLE = frozenset({Standing.CLEAR, Standing.DUE})


def is_pickable(standing: Standing) -> bool:
    """Return whether a request may be given to what stands so."""
    return standing in _PICKABLE


class Failures:
    """What has gone wrong with one subject since it last worked.

    Theory of operation: failures are counted by kind up to a threshold, then the subject is
    suppressed. When that time is over it is due: one request at a time tries it, and keeps others
    away until its lease ends. A failure suppresses it again for twice as long, unless its request
    was picked before that time was over: neither fifty that were on their way are fifty failures,
    nor those that were given to it because nobody else was left.

    Attributes:
        counts: Failures by kind; what shows as a qualifier.
        since_ns: When the last suppression began; None if there was none.
        until_ns: When it ends.
    """

    __slots__ = (
        "_rest_until_ns",
        "_rests",
        "_suppressions",
        "_tried_ns",
        "_tried_until_ns",
        "counts",
        "since_ns",
        "until_ns",
    )

    def __init__(self) -> None:
        self.counts: dict[FailureKind, int] = {}
        self.since_ns: int | None = None
        self.until_ns = 0
        self._suppressions = 0
        self._tried_ns = 0
        self._tried_until_ns: int | None = None
        self._rests = 0
        self._rest_until_ns = 0

    def standing(self, now_ns: int) -> Standing:
        """Return how it stands now."""
        if self.since_ns is not None and now_ns < self.until_ns:
            return Standing.SUPPRESSED
        if now_ns < self._rest_until_ns:
            return Standing.RESTING
        if self.since_ns is None:
            return Standing.CLEAR
        is_tried = self._tried_until_ns is not None and now_ns < self._tried_until_ns
        return Standing.PROBING if is_tried else Standing.DUE

    def tried(self, now_ns: int, lease_ns: int) -> bool:
        """Let a request try it if it is due; return whether this one does."""
        if self.standing(now_ns) is not Standing.DUE:
            return False
        self._tried_ns, self._tried_until_ns = now_ns, now_ns + lease_ns
        return True

    def untried(self, picked_ns: int) -> None:
        """Take note that the request that tried it at *picked_ns* came to nothing.

        One whose lease was over is not the one that tries it now.
        """
        if picked_ns == self._tried_ns:
            self._tried_until_ns = None

    def failed(
        self,
        kind: FailureKind,
        picked_ns: int,
        now_ns: int,
        settings: PickerSuppressionSettings,
        jitter: float,
    ) -> bool:
        """Count a failure.

        Args:
            kind: What went wrong.
            picked_ns: When its request was picked.
            now_ns: Monotonic time.
            settings: Thresholds and times.
            jitter: From -1 to 1.

        Returns:
            Whether this begins a suppression, or one more.
        """
        if kind is FailureKind.BUSY:
            self._rest(picked_ns, now_ns, settings)
            return False
        if self.since_ns is not None and picked_ns < self.until_ns:
            self.counts.setdefault(kind, 1)
            return False
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if self.since_ns is None and self.counts[kind] < _threshold(kind, settings):
            return False
        backoff_ns = _doubled(settings.backoff_min_ns, self._suppressions, settings.backoff_max_ns)
        self._suppressions += 1
        self.since_ns = now_ns
        self.until_ns = now_ns + round(backoff_ns * (1 + settings.backoff_jitter * jitter))
        self._tried_until_ns = None
        return True

    def _rest(self, picked_ns: int, now_ns: int, settings: PickerSuppressionSettings) -> None:
        if picked_ns < self._rest_until_ns:
            return
        self._rest_until_ns = now_ns + _doubled(
            settings.cooldown_min_ns, self._rests, settings.cooldown_max_ns
        )
        self._rests += 1


def _threshold(kind: FailureKind, settings: PickerSuppressionSettings) -> int:
    if kind is FailureKind.MISSING_MODEL:
        return settings.missing_models
    return settings.failures if kind is FailureKind.FAILURE else settings.refusals


def _doubled(first_ns: int, times: int, most_ns: int) -> int:
    """Return *first_ns* doubled so many *times*, but no more than *most_ns*."""
    return min(first_ns << min(times, 62), most_ns)
