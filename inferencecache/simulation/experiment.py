"""One replay without its wire: three strategies see the same prompts, each with its own caches."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from inferencecache.clock import NS_PER_S
from inferencecache.settings.replay import ReplaySettings
from inferencecache.simulation.block_cache import CacheOutcome
from inferencecache.simulation.fleet import Fleet, InfiniteFleet, RoundRobinFleet, Tally, total_of
from inferencecache.simulation.prompt import Prompt
from inferencecache.simulation.routing import LoadWindow, Router, RouteSource, seeded_order
from inferencecache.simulation.summary import (
    CurvePoint,
    ReplaySummary,
    summarize,
    summarize_latency,
    summarize_replica,
)

CURVE_POINTS: Final = 200
"""About how many points the hit ratio curves have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a lookup said, as far as routing goes.

    Attributes:
        reason_code: The reason code.
        hinted_tokens: Replica number to matched tokens; empty without a hint.
        latency_ns: How long the gateway waited, in nanoseconds.
    """

    reason_code: str
    hinted_tokens: Mapping[int, int]
    latency_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Where a prompt went and what that did to the cache there.

    Attributes:
        replica: Number of the replica.
        outcome: What it hit, stored and evicted; to be reported.
    """

    replica: int
    outcome: CacheOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The three strategies so far, for a progress line.

    Attributes:
        round_robin: Totals of the round robin baseline.
        cache_aware: Totals of cache-aware routing.
        infinite: Totals of the infinite cache.
    """

    round_robin: Tally
    cache_aware: Tally
    infinite: Tally


class Experiment:
    """The simulated fleet, the gateway's routing and both baselines.

    Args:
        settings: Size of the fleet and rules of the gateway.
        prompt_count: Prompts that will be played, for the spacing of the curve.
    """

    def __init__(self, settings: ReplaySettings, prompt_count: int) -> None:
        order = seeded_order(settings.replicas, settings.seed)
        self._settings = settings
        self._fleet = Fleet(settings.replicas, settings.cache_blocks)
        self._round_robin = RoundRobinFleet(order, settings.cache_blocks)
        self._infinite = InfiniteFleet()
        self._router = Router(
            order,
            LoadWindow(settings.replicas, settings.overload_factor, settings.load_window_requests),
            settings.match_share_min,
        )
        self._prompt_count = prompt_count
        self._curve_stride = max(1, prompt_count // CURVE_POINTS)
        self._curve: list[CurvePoint] = []
        self._latencies_ns: list[int] = []
        self._reason_codes: Counter[str] = Counter()
        self._routes: Counter[str] = Counter({source.value: 0 for source in RouteSource})
        self._stored_blocks = 0
        self._evicted_blocks = 0

    def play(self, prompt: Prompt, answer: Answer) -> Served:
        """Route and serve one prompt, and let both baselines serve it too.

        Args:
            prompt: The prompt.
            answer: What the lookup of its chain said.
        """
        route = self._router.route(answer.hinted_tokens, prompt.prompt_tokens)
        outcome = self._fleet.serve(route.replica, prompt)
        self._round_robin.serve(prompt)
        self._infinite.serve(prompt)
        self._latencies_ns.append(answer.latency_ns)
        self._reason_codes[answer.reason_code] += 1
        self._routes[route.source] += 1
        self._stored_blocks += len(outcome.stored)
        self._evicted_blocks += len(outcome.evicted)
        self._draw()
        return Served(replica=route.replica, outcome=outcome)

    def standing(self) -> Standing:
        """Return the totals so far."""
        return Standing(
            round_robin=total_of(self._round_robin.tallies),
            cache_aware=total_of(self._fleet.tallies),
            infinite=total_of(self._infinite.tallies),
        )

    def summary(self, trace: str, replica_ids: Sequence[str], duration_ns: int) -> ReplaySummary:
        """Return the result.

        Args:
            trace: Name of the trace.
            replica_ids: The replicas' names, by number.
            duration_ns: Wall-clock time of the replay, in nanoseconds.
        """
        return ReplaySummary(
            trace=trace,
            replicas=self._settings.replicas,
            cache_blocks=self._settings.cache_blocks,
            seed=self._settings.seed,
            round_robin=summarize(self._round_robin.tallies),
            cache_aware=summarize(self._fleet.tallies),
            infinite=summarize(self._infinite.tallies),
            reason_codes=dict(sorted(self._reason_codes.items())),
            routes=dict(self._routes),
            stored_blocks=self._stored_blocks,
            evicted_blocks=self._evicted_blocks,
            lookup=summarize_latency(self._latencies_ns),
            duration_s=duration_ns / NS_PER_S,
            per_replica=[
                summarize_replica(replica_id, tally)
                for replica_id, tally in zip(replica_ids, self._fleet.tallies, strict=True)
            ],
            curve=list(self._curve),
        )

    def _draw(self) -> None:
        """Add a point to the curve where one is due."""
        served = len(self._latencies_ns)
        if served % self._curve_stride and served != self._prompt_count:
            return
        standing = self.standing()
        self._curve.append(
            CurvePoint(
                requests=served,
                round_robin=standing.round_robin.hit_ratio,
                cache_aware=standing.cache_aware.hit_ratio,
                infinite=standing.infinite.hit_ratio,
            )
        )
