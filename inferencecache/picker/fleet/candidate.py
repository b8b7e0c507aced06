"""A candidate: one place that could serve one request, and the model's name there."""

from dataclasses import dataclass

from inferencecache.picker.destination import Destination
from inferencecache.picker.fleet.member import Endpoint, Member, ModelRow, Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One place that could serve a request.

    Attributes:
        member: The worker set or provider.
        endpoint: Which of the set's workers; None for a provider.
        model: The row of the member that serves the request; its name is the target model.
        destination: What a Choice of it says.
    """

    member: Member
    endpoint: Endpoint | None
    model: ModelRow
    destination: Destination

    @property
    def is_provider(self) -> bool:
        """Whether it is outside of the cluster."""
        return isinstance(self.member, Provider)

    @property
    def name(self) -> str:
        """Under which its load and its metrics are kept: its address, or the provider's name."""
        if self.is_provider:
            return f"provider:{self.member.key}"
        return self.destination.name
