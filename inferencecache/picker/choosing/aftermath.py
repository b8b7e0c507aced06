"""What a choice leads to: its failures, its limits, and whom else it has to be told."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

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


class Begun(NamedTuple):
    """What a choice has begun.

    Attributes:
        candidate: What was chosen.
        request: For which request.
        limits: What it counts against until it ends.
        is_trying: Whether it tries a candidate that was suppressed.
    """

    candidate: Candidate
    request: RequestName
    limits: tuple[LimitKey, ...]
    is_trying: bool


class Aftermath:
    """Follows one choice to its end.

    Args:
        parts: Who learns from it.
        begun: The choice.
        follower: Who is told as well, if anybody.
    """

    __slots__ = (
        "_candidate",
        "_follower",
        "_has_status",
        "_is_good",
        "_is_refused",
        "_is_trying",
        "_limits",
        "_parts",
        "_picked_ns",
        "_request",
    )

    def __init__(
        self, parts: AftermathParts, begun: Begun, follower: DecisionFollower | None
    ) -> None:
        self._parts = parts
        self._candidate = begun.candidate
        self._request = begun.request
        self._limits = begun.limits
        self._is_trying = begun.is_trying
        self._has_status = False
        self._is_good = False
        self._is_refused = False
        self._follower = follower
        self._picked_ns = parts.clock.monotonic_ns()

    def first_token(self, report: FirstTokenReport) -> None:
        """Learn from the status of the answer."""
        self._has_status = True
        self._judge(report.upstream_status)
        if self._follower is not None:
            self._follower.first_token(report)

    def ended(self, ending: Ending, report: FinalTokenReport | AbortReport | None) -> None:
        """Learn from the end, and let go of what was held until then."""
        self._parts.gate.end(self._limits)
        if isinstance(report, AbortReport):
            self._aborted(report.reason)
        elif report is not None:
            self._finished(report)
        if self._is_trying:
            self._parts.suppression.let_go(self._candidate)
        if self._follower is not None:
            self._follower.ended(ending, report)

    def _finished(self, report: FinalTokenReport) -> None:
        """Learn from tokens where no status has told, and that no attempt will follow."""
        if report.completion_tokens and not self._has_status:
            self._judge(HTTPStatus.OK)
        if self._is_good:
            self._parts.failed.worked(self._request)

    def _aborted(self, reason: str) -> None:
        """Learn what callers alone can see; a worker has no backend.

        A refusal that the status has told already is one failure, not two.
        """
        kind = _ABORTS.get(reason) if self._candidate.is_provider else None
        if kind is None or (kind is FailureKind.UNAUTHORIZED and self._is_refused):
            return
        self._failed(kind)

    def _judge(self, status: int) -> None:
        if is_good(status):
            self._is_trying = False
            self._is_good = True
            self._parts.suppression.worked(self._candidate)
            return
        failure = failure_of(status, is_provider=self._candidate.is_provider)
        self._is_refused = failure is FailureKind.UNAUTHORIZED
        if failure is not None:
            self._failed(failure)

    def _failed(self, kind: FailureKind) -> None:
        if kind is not FailureKind.BUSY:
            self._is_trying = False
        now_ns = self._parts.clock.monotonic_ns()
        self._parts.suppression.failed(self._candidate, kind, self._picked_ns, now_ns)
        self._parts.failed.failed(self._request, self._candidate.name, now_ns)
