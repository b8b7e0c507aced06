"""Prompts that are made up, routed by lookups over a demo's fleet, and what came of them.

Rules of this file
    1. Hits are counted by the engine that served, never by what a hint promised.
    2. Round robin sees the same prompts on caches of the same size, beside the real thing.
"""

from collections import Counter
from typing import Final

import msgspec

from inferencecache.app.demo_files import BLOCK_TOKENS, MODEL, SCHEME, TENANT
from inferencecache.app.demo_fleet import LAYOUTS, DemoFleet
from inferencecache.app.demo_standing import DemoStanding, EngineStanding, ProviderStanding
from inferencecache.client import AsyncCacheClient, LookupQuery
from inferencecache.clock import NS_PER_S, Clock
from inferencecache.fingerprint import chain
from inferencecache.settings.demo import DemoSettings
from inferencecache.simulation import (
    EngineLife,
    LifeRules,
    LoadWindow,
    Restart,
    Router,
    Serve,
    percentile_ns,
    seeded_order,
)

_SHARE_MIN: Final = 0.1
_OVERLOAD: Final = 1.5
_WINDOW_REQUESTS: Final = 64
_RESTARTED: Final = 1


class DemoTraffic:
    """Looks prompts up, picks an engine, and lets it serve.

    Args:
        fleet: What runs.
        settings: Prompts and sizes.
        clock: Measures lookups.
    """

    def __init__(self, fleet: DemoFleet, settings: DemoSettings, clock: Clock) -> None:
        count = len(fleet.engines)
        order = seeded_order(count, settings.seed)
        self._fleet = fleet
        self._clock = clock
        self._client = AsyncCacheClient(fleet.server.grpc_target, on_warning=_ignore)
        self._router = Router(order, LoadWindow(count, _OVERLOAD, _WINDOW_REQUESTS), _SHARE_MIN)
        self._number_of = {name: number for number, name in enumerate(fleet.replica_ids)}
        rules = LifeRules(cache_blocks=settings.cache_blocks)
        self._others = [EngineLife(rules, number) for number in range(count)]
        self._requests = [0] * count
        self._hit_tokens = self._other_hit_tokens = self._prompt_tokens = 0
        self._reason_codes: Counter[str] = Counter()
        self._latencies_ns: list[int] = []
        self._started_ns = clock.monotonic_ns()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return (self._clock.monotonic_ns() - self._started_ns) / NS_PER_S

    async def send(self, step: Serve) -> None:
        """Route one prompt and have it served; nothing if every engine is down."""
        tokens = list(step.prompt.tokens)
        number = await self._route(tokens)
        if self._fleet.engines[number].is_down:
            return
        engine = self._fleet.engines[number]
        before = engine.player.gauges().hit_tokens
        await engine.play(msgspec.structs.replace(step, rank=0))
        self._hit_tokens += engine.player.gauges().hit_tokens - before
        self._prompt_tokens += len(tokens)
        other = self._others[sum(self._requests) % len(self._others)]
        before = other.hit_tokens
        other.serve(step.prompt)
        self._other_hit_tokens += other.hit_tokens - before
        self._requests[number] += 1

    async def restart_one(self) -> None:
        """Restart an engine; its next message tells its subscriber."""
        if self._fleet.engines[_RESTARTED].is_down:
            return
        await self._fleet.engines[_RESTARTED].play(Restart())
        self._others[_RESTARTED].restart()

    def standing(self, differences: int | None = None) -> DemoStanding:
        """Return how it stands."""
        latencies = sorted(self._latencies_ns) or [0]
        return DemoStanding(
            elapsed_s=self.elapsed_s,
            requests=sum(self._requests),
            hit_ratio=self._hit_tokens / max(1, self._prompt_tokens),
            round_robin_hit_ratio=self._other_hit_tokens / max(1, self._prompt_tokens),
            reason_codes=dict(sorted(self._reason_codes.items())),
            entries=self._fleet.server.plane.index.entries,
            lookup_p50_ms=percentile_ns(latencies, 50) / 1e6,
            lookup_p99_ms=percentile_ns(latencies, 99) / 1e6,
            engines=[self._engine_standing(number) for number in range(len(self._requests))],
            provider=ProviderStanding(
                answered=self._fleet.provider.answered, refused=self._fleet.provider.refused
            ),
            suppressed_s=self._fleet.suppressed_s(self._clock.monotonic_ns()),
            differences=differences,
        )

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    async def _route(self, tokens: list[int]) -> int:
        """Return the number of the engine that gets the prompt."""
        keys = chain(tokens, BLOCK_TOKENS)
        query = LookupQuery(
            tenant_id=TENANT,
            model_id=MODEL,
            hash_scheme=SCHEME,
            block_hashes=keys,
            block_token_counts=[BLOCK_TOKENS] * len(keys),
        )
        started_ns = self._clock.monotonic_ns()
        up = [number for number, one in enumerate(self._fleet.engines) if not one.is_down]
        names = [self._fleet.replica_ids[number] for number in up]
        result = await self._client.lookup(query, eligible=names)
        self._latencies_ns.append(self._clock.monotonic_ns() - started_ns)
        self._reason_codes[result.reason_code.value] += 1
        hinted = {self._number_of[hint.replica_id]: hint.matched_tokens for hint in result.hints}
        number = self._router.route(hinted, len(tokens)).replica
        return number if number in up or not up else up[sum(self._requests) % len(up)]

    def _engine_standing(self, number: int) -> EngineStanding:
        engine, producer = self._fleet.engines[number], self._fleet.producers[number]
        gauges = engine.gauges()
        source = producer.stats.sources[0]
        messages = engine.player.streams[0].next_number
        return EngineStanding(
            name=self._fleet.replica_ids[number],
            layout=LAYOUTS[number],
            is_down=engine.is_down,
            requests=self._requests[number],
            running=gauges.running,
            waiting=gauges.waiting,
            hit_ratio=gauges.hit_tokens / max(1, gauges.query_tokens),
            usage_ratio=gauges.usage_ratio,
            messages=messages,
            behind=max(0, messages - (source.expected or 0)),
            restarts=source.restarts,
        )


def _ignore(_warning: object) -> None:
    """Say nothing: before the first report the server knows no names."""
