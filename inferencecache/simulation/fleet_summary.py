"""What a simulated fleet ends with: the numbers of the table, the JSON and the plot."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from inferencecache.clock import NS_PER_MS
from inferencecache.simulation.fleet_run import FleetRun
from inferencecache.simulation.summary import max_over_mean, percentile_ns

CURVE_PERCENTS = tuple(range(1, 101))
"""Where the distribution of times is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyOutcome:
    """One strategy.

    Attributes:
        name: What people call it.
        requests: Requests answered.
        ttft_p50_ms: Median time to the first token.
        ttft_p95_ms: What 95 % of the requests do not exceed.
        ttft_p99_ms: What 99 % of them do not exceed.
        hit_ratio: Share of the prompt tokens that an engine had cached, 0 to 1.
        requests_max_over_mean: Busiest engine's requests over the mean, >= 1.
        work_max_over_mean: The same for the tokens that engines had to compute.
        requests_by_engine: Requests of each engine, in order.
        ttft_curve_ms: Times that 1 %, 2 %, ... 100 % of the requests do not exceed.
        duration_s: Wall-clock seconds that it took to simulate.
    """

    name: str
    requests: int
    ttft_p50_ms: float
    ttft_p95_ms: float
    ttft_p99_ms: float
    hit_ratio: float
    requests_max_over_mean: float
    work_max_over_mean: float
    requests_by_engine: Sequence[int]
    ttft_curve_ms: Sequence[float]
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSummary:
    """Several strategies on one workload.

    Attributes:
        workload: What was played.
        parameters: Seeds, engines and traffic: everything that the numbers depend on.
        strategies: One entry each.
    """

    workload: str
    parameters: Mapping[str, str]
    strategies: Sequence[StrategyOutcome]

    def of(self, name: str) -> StrategyOutcome:
        """Return the strategy called *name*.

        Raises:
            KeyError: It was not played.
        """
        for strategy in self.strategies:
            if strategy.name == name:
                return strategy
        raise KeyError(name)

    def as_json_object(self) -> dict[str, object]:
        """Return plain lists, dicts, numbers and texts."""
        return asdict(self)


def outcome_of(name: str, run: FleetRun, duration_s: float) -> StrategyOutcome:
    """Return the numbers of a run that has ended.

    Args:
        name: Of its strategy.
        run: The run; at least one request was answered.
        duration_s: Wall-clock seconds that it took.
    """
    times_ns = sorted(each.ttft_ns for each in run.served if each.ttft_ns is not None)
    by_engine = [tally.requests for tally in run.tallies]
    prompt_tokens = sum(tally.prompt_tokens for tally in run.tallies)
    curve = [percentile_ns(times_ns, percent) / NS_PER_MS for percent in CURVE_PERCENTS]
    return StrategyOutcome(
        name=name,
        requests=len(times_ns),
        ttft_p50_ms=curve[49],
        ttft_p95_ms=curve[94],
        ttft_p99_ms=curve[98],
        hit_ratio=sum(tally.cached_tokens for tally in run.tallies) / prompt_tokens,
        requests_max_over_mean=max_over_mean(by_engine),
        work_max_over_mean=max_over_mean([tally.computed_tokens for tally in run.tallies]),
        requests_by_engine=by_engine,
        ttft_curve_ms=curve,
        duration_s=duration_s,
    )
