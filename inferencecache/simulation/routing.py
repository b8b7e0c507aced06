"""What a gateway does with an answer: follow the deepest match if it is worth it and has room.

Rules of this file
    1. The same answers give the same routes: no clock, no randomness but the seeded turn order.
    2. A match is weak if it covers less than ``match_share_min`` of the prompt's tokens. A hint
       without matched tokens (affinity) promises nothing and is never weak.
    3. A replica is overloaded while the prompt tokens it was given among the last
       ``load_window_requests`` requests exceed ``overload_factor`` times the mean over all
       replicas.

Theory of operation
    Hints alone herd: as long as one replica holds the first block of a prompt that everybody
    shares, every request would follow it there. Weak matches and overloaded replicas send requests
    elsewhere, where they store that block too, until it no longer tells replicas apart. Hinted
    replicas are tried by matched tokens, then by load, then in turn order; if none may take the
    request, the next replica in turn that is not overloaded does. The order of scores is not used,
    because scores age with the clock and a replay must not depend on how fast it ran.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from inferencecache.fingerprint import chain


class RouteSource(StrEnum):
    """Why a request went where it went."""

    HINT = "hint"
    """A replica of the answer took it."""

    OVERLOAD = "overload"
    """The answer named replicas worth following, all overloaded, so it went round robin."""

    WEAK = "weak_match"
    """The matches cover too little of the prompt, so it went round robin."""

    ROUND_ROBIN = "round_robin"
    """The answer named none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where one request goes.

    Attributes:
        replica: Number of the replica.
        source: Why.
    """

    replica: int
    source: RouteSource


def seeded_order(replica_count: int, seed: int) -> list[int]:
    """Return the replica numbers in an order that depends on *seed* only.

    Args:
        replica_count: Replicas, >= 1.
        seed: 0 to 2**32 - 1.
    """
    return sorted(range(replica_count), key=lambda replica: chain([seed, replica], 2)[0])


class LoadWindow:
    """Who was given how much lately.

    Args:
        replica_count: Replicas, >= 1.
        factor: Share of the mean above which a replica is overloaded; 0 means never.
        window_requests: How many requests back the window reaches, >= 1.
    """

    def __init__(self, replica_count: int, factor: float, window_requests: int) -> None:
        self._factor = factor
        self._window_requests = window_requests
        self._given: deque[tuple[int, int]] = deque()
        self._total_tokens = 0
        self.tokens: list[int] = [0] * replica_count

    def give(self, replica: int, tokens: int) -> None:
        """Note that *replica* was given *tokens*; the oldest request leaves a full window."""
        self._change(replica, tokens)
        self._given.append((replica, tokens))
        if len(self._given) > self._window_requests:
            oldest_replica, oldest_tokens = self._given.popleft()
            self._change(oldest_replica, -oldest_tokens)

    def is_overloaded(self, replica: int) -> bool:
        """Return whether *replica* has more than its share."""
        if not self._factor:
            return False
        return self.tokens[replica] * len(self.tokens) > self._factor * self._total_tokens

    def _change(self, replica: int, tokens: int) -> None:
        """Add *tokens*, which may be negative."""
        self.tokens[replica] += tokens
        self._total_tokens += tokens


class Router:
    """Turn answers into routes.

    Args:
        order: Turn order for round robin and ties: every replica number once.
        load: The load window; the router keeps it up to date.
        match_share_min: Share of the prompt below which a match is weak, 0 to 1.
    """

    def __init__(self, order: Sequence[int], load: LoadWindow, match_share_min: float) -> None:
        self._order = order
        self._turn_of = {replica: turn for turn, replica in enumerate(order)}
        self._load = load
        self._match_share_min = match_share_min
        self._turn = 0

    def route(self, hinted_tokens: Mapping[int, int], prompt_tokens: int) -> Route:
        """Decide who serves a request.

        Args:
            hinted_tokens: Replica number to matched tokens, as answered; empty for no hint.
            prompt_tokens: Tokens of the prompt, which the chosen replica is charged with.
        """
        weak_below = self._match_share_min * prompt_tokens
        preferred = self._by_preference(
            {one: tokens for one, tokens in hinted_tokens.items() if not 0 < tokens < weak_below}
        )
        replica = next((one for one in preferred if not self._load.is_overloaded(one)), None)
        if replica is not None:
            route = Route(replica=replica, source=RouteSource.HINT)
        else:
            source = RouteSource.WEAK if hinted_tokens else RouteSource.ROUND_ROBIN
            source = RouteSource.OVERLOAD if preferred else source
            route = Route(replica=self._next_in_turn(), source=source)
        self._load.give(route.replica, prompt_tokens)
        return route

    def _by_preference(self, hinted_tokens: Mapping[int, int]) -> list[int]:
        """Return the hinted replicas, the one to try first in front."""
        return sorted(
            hinted_tokens,
            key=lambda replica: (
                -hinted_tokens[replica],
                self._load.tokens[replica],
                self._turn_of[replica],
            ),
        )

    def _next_in_turn(self) -> int:
        """Return the next replica in turn that is not overloaded.

        With a factor of 1 or more there is always one, since the least loaded is never above the
        mean; with a smaller one the least loaded has to do.
        """
        for _ in self._order:
            replica = self._order[self._turn % len(self._order)]
            self._turn += 1
            if not self._load.is_overloaded(replica):
                return replica
        return min(self._order, key=self._load.tokens.__getitem__)
