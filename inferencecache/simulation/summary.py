"""What a replay ends with: the numbers of the table, the JSON and the plot."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from inferencecache.clock import NS_PER_US
from inferencecache.simulation.fleet import Tally, total_of


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategySummary:
    """One way of routing.

    Attributes:
        requests: Prompts served.
        prompt_tokens: Their tokens.
        hit_tokens: Tokens found cached by the replica that served the prompt.
        hit_ratio: hit_tokens / prompt_tokens, 0 to 1.
        requests_max_over_mean: Busiest replica's requests over the mean, >= 1.
        prompt_tokens_max_over_mean: The same for prompt tokens.
        computed_tokens_max_over_mean: The same for tokens that were not cached.
    """

    requests: int
    prompt_tokens: int
    hit_tokens: int
    hit_ratio: float
    requests_max_over_mean: float
    prompt_tokens_max_over_mean: float
    computed_tokens_max_over_mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSummary:
    """One replica under cache-aware routing.

    Attributes:
        replica_id: Its name on the wire.
        requests: Prompts it served.
        prompt_tokens: Their tokens.
        hit_tokens: Those it had cached.
        hit_ratio: hit_tokens / prompt_tokens, 0 to 1.
    """

    replica_id: str
    requests: int
    prompt_tokens: int
    hit_tokens: int
    hit_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencySummary:
    """Lookup latency as the gateway sees it, in microseconds."""

    p50_us: float
    p99_us: float
    max_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """Hit ratios by tokens over everything served so far.

    Attributes:
        requests: Requests served.
        round_robin: Ratio of the round robin baseline, 0 to 1.
        cache_aware: Ratio of cache-aware routing.
        infinite: Ratio of the infinite cache.
    """

    requests: int
    round_robin: float
    cache_aware: float
    infinite: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySummary:
    """Everything a replay found out.

    Attributes:
        trace: Name of the trace.
        replicas: Number of replicas.
        cache_blocks: Capacity of each replica's cache, in blocks.
        seed: Seed of the turn order.
        round_robin: The baseline with the same caches.
        cache_aware: Routing by the server's answers.
        infinite: One cache without a bound.
        reason_codes: Reason code to number of lookups.
        routes: Why requests went where they went, to number of requests.
        stored_blocks: Blocks reported as stored.
        evicted_blocks: Blocks reported as evicted.
        lookup: Lookup latency.
        duration_s: Wall-clock seconds.
        per_replica: One row per replica, in order.
        curve: Hit ratios over the run.
    """

    trace: str
    replicas: int
    cache_blocks: int
    seed: int
    round_robin: StrategySummary
    cache_aware: StrategySummary
    infinite: StrategySummary
    reason_codes: Mapping[str, int]
    routes: Mapping[str, int]
    stored_blocks: int
    evicted_blocks: int
    lookup: LatencySummary
    duration_s: float
    per_replica: Sequence[ReplicaSummary]
    curve: Sequence[CurvePoint]

    def as_json_object(self) -> dict[str, object]:
        """Return plain lists, dicts, numbers and texts."""
        return asdict(self)


def summarize(tallies: Sequence[Tally]) -> StrategySummary:
    """Return the summary of one strategy.

    Args:
        tallies: One per replica, at least one.
    """
    total = total_of(tallies)
    return StrategySummary(
        requests=total.requests,
        prompt_tokens=total.prompt_tokens,
        hit_tokens=total.hit_tokens,
        hit_ratio=total.hit_ratio,
        requests_max_over_mean=max_over_mean([one.requests for one in tallies]),
        prompt_tokens_max_over_mean=max_over_mean([one.prompt_tokens for one in tallies]),
        computed_tokens_max_over_mean=max_over_mean(
            [one.prompt_tokens - one.hit_tokens for one in tallies]
        ),
    )


def summarize_replica(replica_id: str, tally: Tally) -> ReplicaSummary:
    """Return the row of one replica."""
    return ReplicaSummary(
        replica_id=replica_id,
        requests=tally.requests,
        prompt_tokens=tally.prompt_tokens,
        hit_tokens=tally.hit_tokens,
        hit_ratio=tally.hit_ratio,
    )


def summarize_latency(latencies_ns: Sequence[int]) -> LatencySummary:
    """Return the percentiles of *latencies_ns*; zeros without any."""
    return LatencySummary(
        p50_us=percentile_ns(latencies_ns, 50) / NS_PER_US,
        p99_us=percentile_ns(latencies_ns, 99) / NS_PER_US,
        max_us=percentile_ns(latencies_ns, 100) / NS_PER_US,
    )


def percentile_ns(values_ns: Sequence[int], percent: int) -> int:
    """Return the smallest value that *percent* of all values do not exceed (nearest rank).

    Args:
        values_ns: The values, in any order.
        percent: 1 to 100.

    Returns:
        One of the values, or 0 without any.
    """
    if not values_ns:
        return 0
    rank = -(-len(values_ns) * percent // 100)
    return sorted(values_ns)[rank - 1]


def max_over_mean(amounts: Sequence[int]) -> float:
    """Return the largest amount over the mean; 1 when all are zero.

    >>> max_over_mean([3, 1])
    1.5
    """
    total = sum(amounts)
    return max(amounts) * len(amounts) / total if total else 1.0
