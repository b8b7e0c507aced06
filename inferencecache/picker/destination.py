"""Where a request can be sent."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDestination:
    """An engine that the caller can reach by its address.

    Attributes:
        endpoint: ``host:port``, an IPv6 address in brackets.
    """

    endpoint: str

    @property
    def name(self) -> str:
        """Under which its requests in flight are counted."""
        return self.endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderDestination:
    """A provider that the caller resolves.

    Attributes:
        namespace: Of the backend.
        backend: Its name.
        path: Takes the place of the client's; empty leaves it.
    """

    namespace: str
    backend: str
    path: str = ""

    @property
    def name(self) -> str:
        """Under which its requests in flight are counted."""
        return f"provider:{self.namespace}/{self.backend}"


Destination = LocalDestination | ProviderDestination
"""What a Pick names."""
