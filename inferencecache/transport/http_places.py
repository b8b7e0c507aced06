"""Share a bounded number of connections among peers, so that none can take them all.

Rules of this file: while there is room, everybody gets what he asks for. When there is none, a
peer with clearly fewer connections takes one from the peer with most: the oldest that has no
request running. One connection of whoever comes is a place from its first moment, before it has
said anything.
"""

from collections.abc import Iterator
from typing import Protocol


class Place(Protocol):
    """One connection."""

    @property
    def peer(self) -> str:
        """Whose it is."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a request is running on it."""
        ...

    def end_certified(self) -> bool:
        """Close it if its peer shows a certificate; return whether it has done so."""
        ...

    def end(self) -> None:
        """Close it at once."""
        ...


class Places:
    """The open connections.

    Args:
        places_max: Most of them, >= 1.
    """

    def __init__(self, places_max: int) -> None:
        self._places_max = places_max
        self._taken = 0
        self._by_peer: dict[str, dict[Place, None]] = {}

    def __len__(self) -> int:
        return self._taken

    def __iter__(self) -> Iterator[Place]:
        return (place for places in list(self._by_peer.values()) for place in list(places))

    def take(self, place: Place) -> bool:
        """Let *place* in; false if there is no room for it, and nobody must make some.

        Complexity: O(peers and connections of one peer) where there is no room, else O(1).
        """
        if self._taken >= self._places_max and not self._make_room(place.peer):
            return False
        self._by_peer.setdefault(place.peer, {})[place] = None
        self._taken += 1
        return True

    def leave(self, place: Place) -> None:
        """Let *place* go, which may have gone already."""
        places = self._by_peer.get(place.peer, {})
        if place in places:
            del places[place]
            self._taken -= 1
            if not places:
                del self._by_peer[place.peer]

    def _make_room(self, peer: str) -> bool:
        """End a connection of the peer that has most, if that is fair."""
        places = max(self._by_peer.values(), key=len)
        if len(places) <= len(self._by_peer.get(peer, ())) + 1:
            return False
        idle = next((place for place in places if not place.is_busy), None)
        if idle is None:
            return False
        self.leave(idle)
        idle.end()
        return True
