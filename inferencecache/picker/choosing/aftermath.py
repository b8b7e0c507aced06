"""What a choice leads to: its failures, its limits, and whom else it has to be told."""

from dataclasses import dataclass
from http import HTTPStatus

import msgspec

from inferencecache.clock import Clock
from inferencecache.picker.choosing.failed_places import FailedPlaces, RequestName
from inferencecache.picker.choosing.limits import LimitKey
from inferencecache.picker.choosing.policy_gate import PolicyGate
from inferencecache.picker.choosing.suppression import FailureKind, Suppression
from inferencecache.picker.decisions import (
    AbortReport,
    DecisionFollower,
    Ending,
    FinalTokenReport,
    FirstTokenReport,
)
from inferencecache.picker.fleet import Candidate

_ABORTS = {
    "BACKEND_UNRESOLVED": FailureKind.UNRESOLVED,
    "BACKEND_UNAUTHORIZED": FailureKind.UNAUTHORIZED,
}
_REFUSED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.FORBIDDEN})


def is_good(status: int) -> bool:
    """Return whether an answer with *status* shows that its sender works."""
    return HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES


def failure_of(status: int, *, is_provider: bool) -> FailureKind | None:
    """Return what an answer with *status* says against its sender, None if nothing.

    A worker needs no key and has the models it is configured with: what it refuses is the
    client's doing. No status at all stands for no answer.
    """
    if status <= 0 or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return FailureKind.FAILURE
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return FailureKind.BUSY
    if is_provider and status in _REFUSED:
        return FailureKind.UNAUTHORIZED
    if is_provider and status == HTTPStatus.NOT_FOUND:
        return FailureKind.MISSING_MODEL
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AftermathParts:
    """Who learns from what becomes of choices.

    Attributes:
        suppression: Failures of destinations.
        failed: Failures of requests.
        gate: Limits.
        clock: Monotonic time.
    """

    suppression: Suppression
    failed: FailedPlaces
    gate: PolicyGate
    clock: Clock


class Aftermath(msgspec.Struct, eq=False):
    """Follows one choice to its end.

    Attributes:
        parts: Who learns from it.
        candidate: What was chosen.
        request: For which request.
        limits: What it counts against until it ends.
        is_trying: Whether it tries a candidate that was suppressed.
        picked_ns: Monotonic time of the choice.
        follower: Who is told as well.
        has_status: Whether the status of the answer is known.
        is_finished: Whether the answer is complete.
        is_good: Whether that shows that its sender works.
        is_refused: Whether that says that its sender refuses the key.
    """

    parts: AftermathParts
    candidate: Candidate
    request: RequestName
    limits: tuple[LimitKey, ...]
    is_trying: bool
    picked_ns: int
    follower: DecisionFollower
    has_status: bool = False
    is_finished: bool = False
    is_good: bool = False
    is_refused: bool = False

    def first_token(self, report: FirstTokenReport) -> None:
        """Learn from the status of the answer, which may be complete by then."""
        self.has_status = True
        self._judge(report.upstream_status)
        if self.is_finished and is_good(report.upstream_status):
            self.parts.failed.worked(self.request)
        self.follower.first_token(report)

    def ended(self, ending: Ending, report: FinalTokenReport | AbortReport | None) -> None:
        """Learn from the end, and let go of what was held until then."""
        self.parts.gate.end(self.limits)
        if isinstance(report, AbortReport):
            self._aborted(report.reason)
        elif report is not None:
            self._finished(report)
        if self.is_trying:
            self.parts.suppression.let_go(self.candidate, self.picked_ns)
        self.follower.ended(ending, report)

    def _finished(self, report: FinalTokenReport) -> None:
        """Learn from tokens where no status has told, and that no attempt will follow."""
        self.is_finished = True
        if report.completion_tokens and not self.has_status:
            self._judge(HTTPStatus.OK)
        if self.is_good:
            self.parts.failed.worked(self.request)

    def _aborted(self, reason: str) -> None:
        """Learn what callers alone can see; a worker has no backend.

        A refusal that the status has told already is one failure, not two.
        """
        kind = _ABORTS.get(reason) if self.candidate.is_provider else None
        if kind is None or (kind is FailureKind.UNAUTHORIZED and self.is_refused):
            return
        self._failed(kind)

    def _judge(self, status: int) -> None:
        if is_good(status):
            self.is_trying = False
            self.is_good = True
            self.parts.suppression.worked(self.candidate)
            return
        failure = failure_of(status, is_provider=self.candidate.is_provider)
        self.is_refused = failure is FailureKind.UNAUTHORIZED
        if failure is not None:
            self._failed(failure)

    def _failed(self, kind: FailureKind) -> None:
        if kind is not FailureKind.BUSY:
            self.is_trying = False
        now_ns = self.parts.clock.monotonic_ns()
        self.parts.suppression.failed(self.candidate, kind, self.picked_ns, now_ns)
        self.parts.failed.failed(self.request, self.candidate.name, now_ns)
