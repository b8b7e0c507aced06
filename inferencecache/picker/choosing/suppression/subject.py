"""Whom a failure counts against."""

from dataclasses import dataclass
from enum import StrEnum

from inferencecache.picker.fleet import Candidate, Member, ObjectName


class FailureKind(StrEnum):
    """What went wrong; each kind is counted on its own."""

    UNRESOLVED = "unresolved"
    """The caller cannot find the provider's backend."""
    UNAUTHORIZED = "unauthorized"
    """The provider refuses the caller's key: an Abort says so, or an answer of 401, 402 or 403."""
    MISSING_MODEL = "missing_model"
    """404: the provider does not have the model, by the name that it was given."""
    FAILURE = "failure"
    """5xx, or no answer."""
    BUSY = "busy"
    """429; the destination rests for a while, and is not suppressed."""


BACKEND_KINDS = frozenset({FailureKind.UNRESOLVED, FailureKind.UNAUTHORIZED})
"""Those of a provider as a whole; with them it cannot work."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A worker, a provider, or one model of a provider.

    Attributes:
        member: The worker set or provider it belongs to.
        is_provider: Which of the two that is.
        part: The worker's address or the model's name; empty for the provider as a whole.
    """

    member: ObjectName
    is_provider: bool
    part: str = ""

    @property
    def place(self) -> str:
        """The name of the candidates that it is about, or of one of them."""
        return f"provider:{self.member}" if self.is_provider else self.part

    def __str__(self) -> str:
        """Return how people call it, ``ns/set/host:port`` or ``provider:ns/name/model``."""
        kind = "provider:" if self.is_provider else ""
        part = f"/{self.part}" if self.part else ""
        return f"{kind}{self.member}{part}"


def whole_of(candidate: Candidate) -> Subject | None:
    """Return the provider that *candidate* belongs to, None for a worker."""
    if candidate.endpoint is not None:
        return None
    return Subject(candidate.member.key, is_provider=True)


def place_of(candidate: Candidate) -> Subject:
    """Return the worker, or the model of a provider, that *candidate* is."""
    endpoint = candidate.endpoint
    if endpoint is not None:
        return Subject(candidate.member.key, is_provider=False, part=endpoint.address)
    return Subject(candidate.member.key, is_provider=True, part=candidate.model.name)


def subjects_of(candidate: Candidate) -> tuple[Subject, ...]:
    """Return everything that must not be suppressed for *candidate* to be picked."""
    whole, place = whole_of(candidate), place_of(candidate)
    return (place,) if whole is None else (whole, place)


def blamed(candidate: Candidate, kind: FailureKind) -> Subject:
    """Return whom a failure of *candidate* counts against."""
    whole = whole_of(candidate)
    return whole if whole is not None and kind in BACKEND_KINDS else place_of(candidate)


def belongs(subject: Subject, member: Member) -> bool:
    """Return whether *member* still has what *subject* names."""
    if not subject.part:
        return True
    if subject.is_provider:
        return any(row.name == subject.part for row in member.models)
    return any(endpoint.address == subject.part for endpoint in getattr(member, "endpoints", ()))
