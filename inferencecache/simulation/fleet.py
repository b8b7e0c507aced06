"""Simulated replicas and the two baselines, each counting its own hits.

Hit tokens are counted by the cache that served the prompt: leading full blocks it already held,
times the block size. The ratio divides them by all prompt tokens, so the tail of a partial block
counts as computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from inferencecache.simulation.block_cache import BlockCache, CacheOutcome
from inferencecache.simulation.prompt import Prompt
from inferencecache.simulation.trace import TRACE_BLOCK_TOKENS


@dataclass(slots=True, kw_only=True)
class Tally:
    """What went to one place.

    Attributes:
        requests: Prompts served.
        prompt_tokens: Their tokens.
        hit_tokens: Those that were cached.
    """

    requests: int = 0
    prompt_tokens: int = 0
    hit_tokens: int = 0

    @property
    def hit_ratio(self) -> float:
        """Cached share of the prompt tokens, 0 to 1; 0 without any."""
        return self.hit_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    def add(self, prompt: Prompt, hit_blocks: int) -> None:
        """Count one served prompt."""
        self.requests += 1
        self.prompt_tokens += prompt.prompt_tokens
        self.hit_tokens += hit_blocks * TRACE_BLOCK_TOKENS


def total_of(tallies: Sequence[Tally]) -> Tally:
    """Return the sum of *tallies*."""
    return Tally(
        requests=sum(tally.requests for tally in tallies),
        prompt_tokens=sum(tally.prompt_tokens for tally in tallies),
        hit_tokens=sum(tally.hit_tokens for tally in tallies),
    )


class Fleet:
    """Replicas with a cache each; somebody else decides who serves what.

    Args:
        replica_count: Replicas, >= 1.
        cache_blocks: Capacity of each cache, in blocks, >= 1.
    """

    def __init__(self, replica_count: int, cache_blocks: int) -> None:
        self._caches = [BlockCache(cache_blocks) for _ in range(replica_count)]
        self.tallies: list[Tally] = [Tally() for _ in range(replica_count)]

    def serve(self, replica: int, prompt: Prompt) -> CacheOutcome:
        """Serve *prompt* on one replica.

        Args:
            replica: Number of the replica, from 0.
            prompt: The prompt.
        """
        outcome = self._caches[replica].serve(prompt.block_hashes)
        self.tallies[replica].add(prompt, outcome.hit_blocks)
        return outcome


class RoundRobinFleet:
    """The baseline without any knowledge: the same replicas, each in turn.

    Args:
        order: The turn order: every replica number once.
        cache_blocks: Capacity of each cache, in blocks, >= 1.
    """

    def __init__(self, order: Sequence[int], cache_blocks: int) -> None:
        self._order = order
        self._fleet = Fleet(len(order), cache_blocks)
        self._served = 0

    @property
    def tallies(self) -> list[Tally]:
        """One tally per replica."""
        return self._fleet.tallies

    def serve(self, prompt: Prompt) -> None:
        """Serve *prompt* on the replica whose turn it is."""
        self._fleet.serve(self._order[self._served % len(self._order)], prompt)
        self._served += 1


class InfiniteFleet:
    """The upper bound: one cache that never evicts serves everything."""

    def __init__(self) -> None:
        self._held: set[bytes] = set()
        self.tallies: list[Tally] = [Tally()]

    def serve(self, prompt: Prompt) -> None:
        """Serve *prompt*."""
        hit_blocks = 0
        for block_hash in prompt.block_hashes:
            if block_hash not in self._held:
                break
            hit_blocks += 1
        self._held.update(prompt.block_hashes[hit_blocks:])
        self.tallies[0].add(prompt, hit_blocks)
