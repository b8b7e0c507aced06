"""A simulated fleet in virtual time: somebody places requests, engines work, and all of it is told.

Time jumps from one thing that happens to the next; nothing waits, and nothing depends on how fast
the machine is. What is due at the same moment happens in the order of the engines, and before a
request that arrives then.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol

from inferencecache.clock import ManualClock
from inferencecache.simulation.block_cache import BlockCache, CacheOutcome
from inferencecache.simulation.engine_compute import (
    Computed,
    ComputeRules,
    EngineCompute,
    FirstToken,
    Job,
    Step,
)
from inferencecache.simulation.trace import TRACE_BLOCK_TOKENS
from inferencecache.simulation.workload import FleetRequest


class Strategy(Protocol):
    """Places requests, and is told how they go on; the time is its clock's."""

    def place(self, request: FleetRequest) -> int:
        """Return the number of the engine that *request* goes to."""
        ...

    def cached(self, engine: int, request: FleetRequest, outcome: CacheOutcome) -> None:
        """Learn what the cache of *engine* has taken in, and thrown out, for *request*."""
        ...

    def first_token(self, request: FleetRequest, ttft_ns: int) -> None:
        """Learn that the first token of *request* has come."""
        ...

    def finished(self, request: FleetRequest, cached_tokens: int) -> None:
        """Learn that *request* is answered, and how much of its prompt was cached."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRules:
    """What the fleet is made of.

    Attributes:
        engines: How many, >= 1.
        cache_blocks: Capacity of each one's cache, in blocks of 512 tokens.
        compute: How fast each is.
    """

    engines: int
    cache_blocks: int
    compute: ComputeRules


@dataclass(slots=True, kw_only=True)
class EngineTally:
    """What one engine was given.

    Attributes:
        requests: Requests placed on it.
        prompt_tokens: Tokens of the prompts that it has computed.
        cached_tokens: Those that its cache held.
    """

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0

    @property
    def computed_tokens(self) -> int:
        """Tokens that were not cached: the engine's work."""
        return self.prompt_tokens - self.cached_tokens


@dataclass(slots=True, kw_only=True)
class ServedRequest:
    """One request and where it is.

    Attributes:
        request: The request.
        engine: Number of its engine.
        cached_tokens: What the engine's cache held of it; known when it is computed.
        ttft_ns: Time to its first token; None before that.
    """

    request: FleetRequest
    engine: int
    cached_tokens: int = 0
    ttft_ns: int | None = None


class BlockPrefixes:
    """The cache of an engine, by the blocks of requests."""

    def __init__(self, blocks: int) -> None:
        self._capacity = blocks
        self._blocks = BlockCache(blocks)

    def matched_tokens(self, prompt: FleetRequest) -> int:
        """Return how many leading tokens of *prompt* are cached."""
        return self._blocks.matched_blocks(prompt.block_hashes) * TRACE_BLOCK_TOKENS

    def store(self, prompt: FleetRequest) -> CacheOutcome:
        """Cache the full blocks of *prompt*."""
        return self._blocks.serve(prompt.block_hashes)

    def clear(self) -> None:
        """Hold nothing any more, without a word to anybody."""
        self._blocks = BlockCache(self._capacity)


class FleetRun:
    """One strategy's way through a workload.

    Args:
        rules: The fleet.
        strategy: Places requests.
        clock: The strategy's; it is set to whatever happens.

    Attributes:
        caches: By engine, what it holds.
        tallies: By engine, what it was given.
        served: By number of the request, what has become of it.
    """

    def __init__(self, rules: FleetRules, strategy: Strategy, clock: ManualClock) -> None:
        self._strategy = strategy
        self._clock = clock
        self.caches = [BlockPrefixes(rules.cache_blocks) for _ in range(rules.engines)]
        self._engines: list[EngineCompute[FleetRequest, CacheOutcome]] = [
            EngineCompute(rules.compute, cache) for cache in self.caches
        ]
        self._due: list[tuple[int, int]] = []
        self.tallies = [EngineTally() for _ in range(rules.engines)]
        self.served: list[ServedRequest] = []

    def play(self, requests: Iterable[FleetRequest]) -> Sequence[ServedRequest]:
        """Let all *requests* arrive, and every one of them be answered."""
        for request in requests:
            self.offer(request)
        self.end()
        return self.served

    def offer(self, request: FleetRequest) -> ServedRequest:
        """Let time go on until *request* arrives, and place it.

        Args:
            request: The next one in order.

        Complexity: O(log engines) per step of an engine, besides what the strategy does.
        """
        self._advance(request.arrival_ns)
        self._clock.set_ns(request.arrival_ns)
        number = self._strategy.place(request)
        served = ServedRequest(request=request, engine=number)
        self.served.append(served)
        self.tallies[number].requests += 1
        job = Job(
            number=request.number,
            prompt=request,
            prompt_tokens=request.prompt_tokens,
            output_tokens=request.output_tokens,
        )
        self._engines[number].submit(job, request.arrival_ns)
        self._look_out(number)
        return served

    def end(self) -> None:
        """Let time go on until nobody has anything to do."""
        self._advance(None)

    def _advance(self, until_ns: int | None) -> None:
        while self._due and (until_ns is None or self._due[0][0] <= until_ns):
            due_ns, number = heappop(self._due)
            engine = self._engines[number]
            if engine.due_ns != due_ns:  # it was overtaken by something earlier
                continue
            for step in engine.advance(due_ns):
                self._clock.set_ns(step.at_ns)
                self._tell(number, step)
            self._look_out(number)

    def _look_out(self, number: int) -> None:
        due_ns = self._engines[number].due_ns
        if due_ns is not None:
            heappush(self._due, (due_ns, number))

    def _tell(self, number: int, step: Step[FleetRequest, CacheOutcome]) -> None:
        request = step.job.prompt
        served = self.served[request.number]
        if isinstance(step, Computed):
            served.cached_tokens = step.cached_tokens
            tally = self.tallies[number]
            tally.prompt_tokens += request.prompt_tokens
            tally.cached_tokens += step.cached_tokens
            self._strategy.cached(number, request, step.change)
        elif isinstance(step, FirstToken):
            served.ttft_ns = step.at_ns - request.arrival_ns
            self._strategy.first_token(request, served.ttft_ns)
        else:
            self._strategy.finished(request, served.cached_tokens)
