"""A candidate: one place that could serve one request, and the model's name there."""

from dataclasses import dataclass, field

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
        name: Under which its load and its metrics are kept: its address, or the provider's name.
        is_provider: Whether it is outside of the cluster.
    """

    member: Member
    endpoint: Endpoint | None
    model: ModelRow
    destination: Destination
    name: str = field(init=False)
    is_provider: bool = field(init=False)

    def __post_init__(self) -> None:
        """Work out what every Pick asks for many times."""
        is_provider = isinstance(self.member, Provider)
        name = f"provider:{self.member.key}" if is_provider else self.destination.name
        object.__setattr__(self, "is_provider", is_provider)
        object.__setattr__(self, "name", name)
