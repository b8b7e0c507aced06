"""A candidate: one place that could serve one request, and the model's name there."""

from dataclasses import dataclass, field
from typing import NamedTuple

from inferencecache.picker.destination import Destination
from inferencecache.picker.fleet.member import (
    Endpoint,
    Member,
    ModelRow,
    PriorsForEngine,
    WorkerSet,
)


class CandidateCard(NamedTuple):
    """What of a candidate may be kept when its fleet is replaced: it does not hold that.

    Attributes:
        name: See :class:`Candidate`.
        model: Name of the target model.
        priors: See there.
        weight: See there.
    """

    name: str
    model: str
    priors: PriorsForEngine | None
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One place that could serve a request.

    Attributes:
        member: The worker set or provider.
        endpoint: Which of the set's workers; None for a provider.
        model: The row of the member that serves the request; its name is the target model.
        destination: What a Choice of it says.
        name: Under which its load and its metrics are kept: its address, or the provider's name.
        is_provider: Whether it is outside of the cluster.
        priors: What is believed of the worker's engine; None for a provider.
        weight: The worker's share of the load beside others; 1 for a provider.
        known_as: The worker's names, as a candidate and in the index; None for a provider.
        card: What of it may be kept for longer than the fleet.
    """

    member: Member
    endpoint: Endpoint | None
    model: ModelRow
    destination: Destination
    name: str = field(init=False)
    is_provider: bool = field(init=False)
    priors: PriorsForEngine | None = field(init=False)
    weight: float = field(init=False)
    known_as: tuple[str, str] | None = field(init=False, repr=False, compare=False)
    card: CandidateCard = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Work out what every Pick asks for many times."""
        member, endpoint = self.member, self.endpoint
        if isinstance(member, WorkerSet):
            name, priors = self.destination.name, member.priors
        else:
            name, priors = f"provider:{member.key}", None
        weight = 1.0 if endpoint is None else endpoint.weight
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "is_provider", priors is None)
        object.__setattr__(self, "priors", priors)
        object.__setattr__(self, "weight", weight)
        known_as = None if endpoint is None or priors is None else (name, endpoint.name)
        object.__setattr__(self, "known_as", known_as)
        object.__setattr__(self, "card", CandidateCard(name, self.model.name, priors, weight))
