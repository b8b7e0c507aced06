"""Who fails, and who is left alone for it.

Rules of this file: only what has failed since it last worked is remembered; a first good token, a
changed object and an operator's word forget it. Everything is about subjects of the fleet in
force: what a report says about a member that is gone, or was another one then, counts nothing.

Almost nobody has failed; a look at a candidate's name alone tells that.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from inferencecache.picker.choosing.suppression.standing import Failures, Standing
from inferencecache.picker.choosing.suppression.subject import (
    FailureKind,
    Subject,
    belongs,
    blamed,
    subjects_of,
)
from inferencecache.picker.fleet import Candidate, Member, ObjectName, Provider, Qualifier
from inferencecache.settings.picker_choice import PickerSuppressionSettings

_QUALIFIERS = {
    FailureKind.UNRESOLVED: Qualifier.BACKEND_UNRESOLVED,
    FailureKind.UNAUTHORIZED: Qualifier.BACKEND_UNAUTHORIZED,
}

_BADNESS = (
    Standing.CLEAR,
    Standing.DUE,
    Standing.PROBING,
    Standing.RESTING,
    Standing.SUPPRESSED,
)

MemberKey = tuple[bool, ObjectName]
"""Whether it is a provider, and its name."""


class SuppressionObserver(Protocol):
    """Told when somebody is left alone, and when that is over."""

    def suppressed(self, subject: Subject, kind: FailureKind, duration_ns: int) -> None:
        """Take note that *subject* is not picked for a while, because of *kind*."""
        ...

    def restored(self, subject: Subject, why: str) -> None:
        """Take note that *subject* is as good as new; *why* in one word."""
        ...


class Suppression:
    """The failures of all destinations.

    Args:
        settings: Thresholds and times.
        jitter: Draws a number from -1 to 1.
        observer: Told of both edges.
    """

    def __init__(
        self,
        settings: PickerSuppressionSettings,
        jitter: Callable[[], float],
        observer: SuppressionObserver,
    ) -> None:
        self._settings = settings
        self._jitter = jitter
        self._observer = observer
        self._failing: OrderedDict[Subject, Failures] = OrderedDict()
        self._places: dict[str, int] = {}
        self._members: dict[MemberKey, Member] = {}

    def __len__(self) -> int:
        """Return how many subjects have failed since they last worked."""
        return len(self._failing)

    def adopt(self, members: Iterable[Member]) -> None:
        """Put another fleet into force; what has changed or gone in it is forgotten."""
        before = self._members
        self._members = {(isinstance(member, Provider), member.key): member for member in members}
        for subject in list(self._failing):
            key = (subject.is_provider, subject.member)
            member = self._members.get(key)
            if member is None or member.generation != before[key].generation:
                self._forget(subject, "changed")
            elif not belongs(subject, member):
                self._forget(subject, "gone")

    def standing(self, candidate: Candidate, now_ns: int) -> Standing:
        """Return how *candidate* stands: as the worst of what it depends on."""
        if candidate.name not in self._places:
            return Standing.CLEAR
        standings = [
            failures.standing(now_ns)
            for subject in subjects_of(candidate)
            if (failures := self._failing.get(subject)) is not None
        ]
        return max(standings, key=_BADNESS.index, default=Standing.CLEAR)

    def picked(self, candidate: Candidate, now_ns: int) -> bool:
        """Take note that a request goes to *candidate*; return whether it tries it."""
        if candidate.name not in self._places:
            return False
        lease_ns = self._settings.probe_lease_ns
        is_trying = False
        for subject in subjects_of(candidate):
            failures = self._failing.get(subject)
            if failures is not None and failures.tried(now_ns, lease_ns):
                is_trying = True
        return is_trying

    def let_go(self, candidate: Candidate, picked_ns: int) -> None:
        """Take note that a request that tried *candidate* has said nothing about it.

        Args:
            candidate: Whom.
            picked_ns: When it was given to *candidate*.
        """
        for subject in subjects_of(candidate):
            failures = self._failing.get(subject)
            if failures is not None:
                failures.untried(picked_ns)

    def failed(self, candidate: Candidate, kind: FailureKind, picked_ns: int, now_ns: int) -> None:
        """Count a failure of a request that was given to *candidate* at *picked_ns*."""
        if not self._is_current(candidate):
            return
        subject = blamed(candidate, kind)
        failures = self._failing.get(subject)
        if failures is None:
            self._make_room()
            failures = self._failing[subject] = Failures()
            self._places[subject.place] = self._places.get(subject.place, 0) + 1
        if failures.failed(kind, picked_ns, now_ns, self._settings, self._jitter()):
            self._observer.suppressed(subject, kind, failures.until_ns - now_ns)

    def worked(self, candidate: Candidate) -> None:
        """Take note of a good token; everything that *candidate* depends on is as good as new."""
        if self._failing and self._is_current(candidate):
            for subject in subjects_of(candidate):
                if subject in self._failing:
                    self._forget(subject, "worked")

    def lift(self, name: str) -> int:
        """Forget the failures of whoever people call *name*, and of its parts.

        A part is what a slash behind the whole begins: names of models have slashes of their own.

        Returns:
            How many subjects were forgotten.
        """
        named = [
            subject
            for subject in self._failing
            if name in (str(subject), str(replace(subject, part="")))
        ]
        for subject in named:
            self._forget(subject, "lifted")
        return len(named)

    def qualifiers_of(self, member: Member) -> frozenset[Qualifier]:
        """Return what traffic says of *member*."""
        is_provider = isinstance(member, Provider)
        found = {
            Qualifier.SUPPRESSED
            for subject, _ in self.suppressed()
            if subject.member == member.key and subject.is_provider == is_provider
        }
        failures = self._failing.get(Subject(member.key, is_provider=True))
        if is_provider and failures is not None:
            found.update(_QUALIFIERS[kind] for kind in failures.counts if kind in _QUALIFIERS)
        return frozenset(found)

    def suppressed(self) -> Iterator[tuple[Subject, Failures]]:
        """Yield whoever was suppressed and has not worked since."""
        for subject, failures in self._failing.items():
            if failures.since_ns is not None:
                yield subject, failures

    def remaining_ns(self, now_ns: int) -> Mapping[Subject, int]:
        """Return how long each suppression still lasts; 0 where a request may try it."""
        return {
            subject: max(failures.until_ns - now_ns, 0) for subject, failures in self.suppressed()
        }

    def _is_current(self, candidate: Candidate) -> bool:
        member = self._members.get((candidate.endpoint is None, candidate.member.key))
        return member is not None and member.generation == candidate.member.generation

    def _make_room(self) -> None:
        if len(self._failing) >= self._settings.tracked_max:
            self._forget(next(iter(self._failing)), "forgotten")

    def _forget(self, subject: Subject, why: str) -> None:
        failures = self._failing.pop(subject)
        self._places[subject.place] -= 1
        if not self._places[subject.place]:
            del self._places[subject.place]
        if failures.since_ns is not None:
            self._observer.restored(subject, why)
