"""Requests in flight as load: what each adds to its candidate, and when that ends.

Rules of this file: what a request adds is what it takes away again, its prompt with the first
token, all that is left with its end; whatever comes first of its end and its age counts, once. So
every count returns to 0, in any order of reports.

Callers may never report. A request whose caller is silent would weigh on its candidate until its
decision expires, so it counts only as long as one in a hundred takes, and as long again.
"""

from collections import OrderedDict
from collections.abc import Iterator

import msgspec

from inferencecache.clock import Clock
from inferencecache.picker.decisions import (
    AbortReport,
    Ending,
    FinalTokenReport,
    FirstTokenReport,
)
from inferencecache.picker.load.candidate_load import IDLE, CandidateLoad
from inferencecache.picker.load.observed_durations import ObservedDurations
from inferencecache.settings.picker_load import PickerLoadSettings


class LoadShare(msgspec.Struct, eq=False):
    """What one request adds; follows its decision.

    Attributes:
        table: Where it counts.
        number: Its place in the order in which requests came.
        name: The candidate's.
        prefill_tokens: What it must still compute before its first token.
        decode_tokens: What its answer may have.
        placed_ns: Since when it counts.
    """

    table: "LoadTable"
    number: int
    name: str
    prefill_tokens: int
    decode_tokens: int
    placed_ns: int

    def first_token(self, _report: FirstTokenReport) -> None:
        """Take the prompt away: it is computed, or will not be."""
        self.table.answered(self)

    def ended(self, ending: Ending, _report: FinalTokenReport | AbortReport | None) -> None:
        """Take the rest away."""
        self.table.end(self, is_finished=ending is Ending.FINISHED)


class LoadTable:
    """The load of all candidates, by their names.

    Args:
        settings: How long a silent request counts.
        age_max_ns: The longest that it can count.
        clock: Monotonic time.

    Attributes:
        loads: The loads of this moment and later, by name; who has none is not in it. Not to be
            written to.
        aged: Requests that stopped to count because nobody said anything about them.
    """

    def __init__(self, settings: PickerLoadSettings, age_max_ns: int, clock: Clock) -> None:
        self._settings = settings
        self._age_max_ns = age_max_ns
        self._clock = clock
        self.loads: dict[str, CandidateLoad] = {}
        self._shares: OrderedDict[int, LoadShare] = OrderedDict()
        self._durations = ObservedDurations(settings.age_samples_max)
        self._number = 0
        self.aged = 0

    def __len__(self) -> int:
        """Return how many requests count."""
        return len(self._shares)

    def __iter__(self) -> Iterator[tuple[str, CandidateLoad]]:
        return iter(self.loads.items())

    def of(self, name: str) -> CandidateLoad:
        """Return the load of the candidate *name*."""
        return self.loads.get(name, IDLE)

    @property
    def age_limit_ns(self) -> int:
        """For how long a request counts about which nobody says anything."""
        settings = self._settings
        if len(self._durations) < settings.age_samples_min:
            return self._age_max_ns
        adaptive_ns = int(settings.age_factor * self._durations.high_ns())
        return min(self._age_max_ns, max(settings.age_min_ns, adaptive_ns))

    def place(self, name: str, prefill_tokens: int, decode_tokens: int) -> LoadShare:
        """Count a request that goes to the candidate *name*; whoever gets the share ends it."""
        now_ns = self._clock.monotonic_ns()
        self.expire(now_ns)
        self._number += 1
        share = LoadShare(
            self, self._number, name, max(0, prefill_tokens), max(0, decode_tokens), now_ns
        )
        self._shares[share.number] = share
        self._add(name, 1, share.prefill_tokens, share.decode_tokens)
        return share

    def answered(self, share: LoadShare) -> None:
        """Take note that the first token of a request has come."""
        tokens, share.prefill_tokens = share.prefill_tokens, 0
        if tokens and share.number in self._shares:
            self._add(share.name, 0, -tokens, 0)

    def end(self, share: LoadShare, *, is_finished: bool) -> None:
        """Let go of a request.

        Args:
            share: What it adds.
            is_finished: Whether it was answered to its end, so that others may take as long.
        """
        if is_finished:
            self._durations.add(self._clock.monotonic_ns() - share.placed_ns)
        self._drop(share)

    def expire(self, now_ns: int) -> None:
        """Let go of requests about which nobody has said anything for too long.

        Complexity: O(1) and one step per request that goes, since they came in order.
        """
        if not self._shares:
            return
        limit_ns = self.age_limit_ns
        while self._shares:
            share = next(iter(self._shares.values()))
            if now_ns - share.placed_ns < limit_ns:
                return
            self.aged += 1
            self._drop(share)

    def _drop(self, share: LoadShare) -> None:
        if self._shares.pop(share.number, None) is not None:
            self._add(share.name, -1, -share.prefill_tokens, -share.decode_tokens)

    def _add(self, name: str, requests: int, prefill_tokens: int, decode_tokens: int) -> None:
        before = self.loads.get(name, IDLE)
        left = before.requests + requests
        if left <= 0:
            self.loads.pop(name, None)
            return
        self.loads[name] = CandidateLoad(
            left,
            max(0, before.prefill_tokens + prefill_tokens),
            max(0, before.decode_tokens + decode_tokens),
        )
