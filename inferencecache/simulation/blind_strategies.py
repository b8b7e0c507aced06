"""Strategies that hear nothing from engines: what a picker has to be better than."""

from collections.abc import Sequence

from inferencecache.simulation.block_cache import CacheOutcome
from inferencecache.simulation.routing import seeded_order
from inferencecache.simulation.trace import TRACE_BLOCK_TOKENS
from inferencecache.simulation.workload import FleetRequest


class RoundRobin:
    """Each request to the next engine in turn.

    Args:
        engines: How many there are.
        seed: Of the turn order.
    """

    def __init__(self, engines: int, seed: int) -> None:
        self._order = seeded_order(engines, seed)
        self._turn = 0

    def place(self, request: FleetRequest) -> int:  # noqa: ARG002 - it does not look
        """Return the next engine in turn."""
        self._turn += 1
        return self._order[self._turn % len(self._order)]

    def cached(self, engine: int, request: FleetRequest, outcome: CacheOutcome) -> None:
        """Take no notice."""

    def first_token(self, request: FleetRequest, ttft_ns: int) -> None:
        """Take no notice."""

    def finished(self, request: FleetRequest, cached_tokens: int) -> None:
        """Take no notice."""


class LeastLoad:
    """Each request to the engine with the fewest requests in flight; of equals, the idlest.

    Args:
        engines: How many there are.
        seed: Of the order in which idle engines are given their first request.
    """

    def __init__(self, engines: int, seed: int) -> None:
        order = seeded_order(engines, seed)
        self._last_turn = {engine: turn - engines for turn, engine in enumerate(order)}
        self._turn = 0
        self._placed: dict[int, int] = {}
        self._in_flight = [0] * engines

    def place(self, request: FleetRequest) -> int:
        """Return the engine with the least to do."""
        engine = min(
            self._last_turn, key=lambda each: (self._in_flight[each], self._last_turn[each])
        )
        self.given(request, engine)
        return engine

    def given(self, request: FleetRequest, engine: int) -> None:
        """Count *request* for *engine*, whoever placed it there."""
        self._turn += 1
        self._last_turn[engine] = self._turn
        self._in_flight[engine] += 1
        self._placed[request.number] = engine

    def cached(self, engine: int, request: FleetRequest, outcome: CacheOutcome) -> None:
        """Take no notice."""

    def first_token(self, request: FleetRequest, ttft_ns: int) -> None:
        """Take no notice: a request is in flight until it is answered."""

    def finished(self, request: FleetRequest, cached_tokens: int) -> None:  # noqa: ARG002 - it does not look
        """Count one less."""
        self._in_flight[self._placed.pop(request.number)] -= 1


class PrefixSticky:
    """Each request to the engine that was last given its longest known prefix, busy or not.

    A prompt that shares less than a given part with all earlier ones goes by load.

    Args:
        engines: How many there are.
        seed: Of the order in which idle engines are given their first request.
        share_min: Part of the prompt that must be known, 0 to 1.
    """

    def __init__(self, engines: int, seed: int, share_min: float) -> None:
        self._least_load = LeastLoad(engines, seed)
        self._share_min = share_min
        self._given: dict[bytes, int] = {}

    def place(self, request: FleetRequest) -> int:
        """Return the engine that had the longest prefix, or the one with the least to do."""
        hashes = request.block_hashes
        known = self._known(hashes)
        if known and known * TRACE_BLOCK_TOKENS >= self._share_min * request.prompt_tokens:
            engine = self._given[hashes[known - 1]]
            self._least_load.given(request, engine)
        else:
            engine = self._least_load.place(request)
        self._given.update(dict.fromkeys(hashes, engine))
        return engine

    def _known(self, hashes: Sequence[bytes]) -> int:
        for depth, block_hash in enumerate(hashes):
            if block_hash not in self._given:
                return depth
        return len(hashes)

    def cached(self, engine: int, request: FleetRequest, outcome: CacheOutcome) -> None:
        """Take no notice."""

    def first_token(self, request: FleetRequest, ttft_ns: int) -> None:
        """Take no notice."""

    def finished(self, request: FleetRequest, cached_tokens: int) -> None:
        """Count one less."""
        self._least_load.finished(request, cached_tokens)
