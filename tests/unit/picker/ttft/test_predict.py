"""What is learnt from reported times to the first token, with numbers one can redo by hand."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferencecache.clock import NS_PER_S
from inferencecache.picker.fleet import ObjectName, PriorsForEngine
from inferencecache.picker.ttft import (
    ProviderPredictor,
    Situation,
    WorkerPredictor,
    estimated_ttft_ms,
)
from inferencecache.picker.ttft.fit import ForgettingFit
from inferencecache.settings.picker_ttft import TtftSettings

SET = ObjectName(namespace="default", name="llama")
PROVIDER = ObjectName(namespace="default", name="databricks")
PRIORS = PriorsForEngine(prefill_tokens_per_s=8_000.0, base_ttft_ms=50.0, concurrency_max=64)
SETTINGS = TtftSettings()
TOKENS = st.integers(min_value=0, max_value=2_000_000)
REQUESTS = st.integers(min_value=0, max_value=10_000)


def situation(own: int, ahead: int = 0, requests: int = 0, waiting: int = 0) -> Situation:
    """Return a situation by its numbers."""
    return Situation(
        uncached_tokens=own,
        uncached_tokens_ahead=ahead,
        requests_ahead=requests,
        waiting_ahead=waiting,
    )


def true_ms(met: Situation) -> float:
    """Return what an engine of 4,000 tokens/s takes, 30 ms at least and 5 ms per request."""
    tokens = met.uncached_tokens + met.uncached_tokens_ahead
    return 30.0 + tokens / 4.0 + 5.0 * met.requests_ahead


def drawn(rng: random.Random) -> Situation:
    """Draw a situation."""
    return situation(rng.randrange(20_000), rng.randrange(40_000), rng.randrange(30))


def taught(*, outliers: float = 0.0, reports: int = 300) -> WorkerPredictor:
    """Return a predictor that has seen reports of one engine, one each 100 ms."""
    rng = random.Random(7)
    predictor = WorkerPredictor(SETTINGS)
    for count in range(reports):
        met = drawn(rng)
        is_outlier = rng.random() < outliers
        predictor.observe(
            SET,
            "a",
            priors=PRIORS,
            situation=met,
            observed_ms=true_ms(met) * (20.0 if is_outlier else 1.0),
            now_ns=count * NS_PER_S // 10,
        )
    return predictor


def predicted(predictor: WorkerPredictor, endpoint: str, met: Situation, at_s: int) -> float | None:
    """Return what is predicted for an endpoint of the set."""
    return predictor.predict_ms(SET, endpoint, priors=PRIORS, situation=met, now_ns=at_s * NS_PER_S)


def test_estimate_adds_base_prefill_and_queue() -> None:
    """50 ms, 4,000 tokens at 8 a millisecond, five requests, two of which wait."""
    found = estimated_ttft_ms(situation(1_000, 3_000, 5, 2), PRIORS, SETTINGS)
    assert found == pytest.approx(50.0 + 4_000 / 8.0 + 5 * 1.0 + 2 * 20.0)


@given(own=TOKENS, ahead=TOKENS, requests=REQUESTS, waiting=REQUESTS, more=TOKENS)
def test_estimate_grows_with_tokens_and_queue(
    own: int, ahead: int, requests: int, waiting: int, more: int
) -> None:
    """More work is never estimated to be faster."""
    base = estimated_ttft_ms(situation(own, ahead, requests, waiting), PRIORS, SETTINGS)
    assert 50.0 <= base < float("inf")
    for other in (
        situation(own + more, ahead, requests, waiting),
        situation(own, ahead + more, requests, waiting),
        situation(own, ahead, requests + more, waiting),
        situation(own, ahead, requests, waiting + more),
    ):
        assert estimated_ttft_ms(other, PRIORS, SETTINGS) >= base


def test_worker_learns_an_engines_speed() -> None:
    """An engine twice as slow as believed is foreseen after 300 reports."""
    predictor = taught()
    met = situation(8_000, 4_000, 10)
    assert predicted(predictor, "a", met, 30) == pytest.approx(true_ms(met), rel=0.05)


def test_worker_outliers_pull_little() -> None:
    """One report in twenty is twenty times too long: a plain mean would be off by 95 %."""
    predictor = taught(outliers=0.05)
    met = situation(8_000, 4_000, 10)
    assert predicted(predictor, "a", met, 30) == pytest.approx(true_ms(met), rel=0.35)


def test_worker_a_new_worker_takes_the_value_of_its_set() -> None:
    """Nobody has to wait for its own ten reports."""
    predictor = taught()
    met = situation(8_000, 4_000, 10)
    assert predicted(predictor, "new", met, 30) == pytest.approx(true_ms(met), rel=0.05)


def test_worker_nine_reports_are_too_few_and_ten_enough() -> None:
    """Below the least number there is no value at all."""
    assert predicted(taught(reports=9), "a", situation(100), 1) is None
    assert predicted(taught(reports=10), "a", situation(100), 1) is not None


def test_worker_evidence_grows_old() -> None:
    """Ten reports of more than three minutes ago say nothing."""
    predictor = taught(reports=10)
    assert predicted(predictor, "a", situation(100), 180) is not None
    assert predicted(predictor, "a", situation(100), 181) is None


def test_worker_a_slower_engine_is_noticed() -> None:
    """What was true before fades."""
    predictor = taught()
    rng = random.Random(8)
    for count in range(300):
        met = drawn(rng)
        predictor.observe(
            SET,
            "a",
            priors=PRIORS,
            situation=met,
            observed_ms=3 * true_ms(met),
            now_ns=(100 + count) * NS_PER_S,
        )
    met = situation(8_000)
    assert predicted(predictor, "a", met, 400) == pytest.approx(3 * true_ms(met), rel=0.1)


def test_worker_keeps_no_more_workers_than_it_may() -> None:
    """The one that was unheard of longest goes."""
    predictor = WorkerPredictor(TtftSettings(workers_max=3))
    for number in range(10):
        predictor.observe(
            SET,
            f"engine-{number}",
            priors=PRIORS,
            situation=situation(100),
            observed_ms=80.0,
            now_ns=number,
        )
    assert len(predictor) == 3


def test_worker_a_forgotten_worker_falls_back_to_its_set() -> None:
    """One that has left the fleet and comes back does not answer for its past."""
    predictor = taught()
    met = situation(8_000)
    for _ in range(50):
        predictor.observe(
            SET, "b", priors=PRIORS, situation=met, observed_ms=9_000.0, now_ns=30 * NS_PER_S
        )
    before = predicted(predictor, "b", met, 31)
    predictor.retain({"a"})
    after = predicted(predictor, "b", met, 31)
    assert before is not None
    assert after is not None
    assert after < before


@given(
    reports=st.lists(
        st.tuples(TOKENS, TOKENS, REQUESTS, st.floats(allow_nan=False, allow_infinity=False)),
        min_size=10,
        max_size=40,
    ),
    own=TOKENS,
    ahead=TOKENS,
    requests=REQUESTS,
    more=st.integers(min_value=0, max_value=100_000),
)
def test_worker_is_a_number_that_grows_with_the_work(
    reports: list[tuple[int, int, int, float]],
    own: int,
    ahead: int,
    requests: int,
    more: int,
) -> None:
    """Whatever was reported: a number, within bounds, monotone in each kind of work."""
    predictor = WorkerPredictor(SETTINGS)
    for met_own, met_ahead, met_requests, observed_ms in reports:
        predictor.observe(
            SET,
            "a",
            priors=PRIORS,
            situation=situation(met_own, met_ahead, met_requests),
            observed_ms=observed_ms,
            now_ns=0,
        )
    base = predicted(predictor, "a", situation(own, ahead, requests), 1)
    assert base is not None
    assert 1.0 <= base <= SETTINGS.observed_ms_max
    for other in (
        situation(own + more, ahead, requests),
        situation(own, ahead + more, requests),
        situation(own, ahead, requests + more),
    ):
        found = predicted(predictor, "a", other, 1)
        assert found is not None
        assert found >= base


def test_fit_the_worked_example() -> None:
    """Two points on the line 50 + 100 x; the third follows."""
    fit = ForgettingFit(half_life_ns=NS_PER_S, prior_samples=1e-9, outlier_spreads=1e9)
    start = (50.0, 1.0, 1.0, 1.0)
    for _ in range(20):
        fit.observe((1.0, 1.0, 0.0, 0.0), 150.0, start, now_ns=0)
        fit.observe((1.0, 2.0, 0.0, 0.0), 250.0, start, now_ns=0)
    assert fit.value((1.0, 3.0, 0.0, 0.0), start) == pytest.approx(350.0, rel=0.02)


def test_fit_without_reports_the_start_is_the_answer() -> None:
    """The starting weights solve an empty fit."""
    fit = ForgettingFit(half_life_ns=NS_PER_S, prior_samples=5.0, outlier_spreads=3.0)
    assert fit.weights((50.0, 125.0, 125.0, 0.0)) == (50.0, 125.0, 125.0, 0.0)


def test_fit_more_work_is_never_faster() -> None:
    """Reports that say so leave a weight of zero, not a negative one."""
    fit = ForgettingFit(half_life_ns=NS_PER_S, prior_samples=0.001, outlier_spreads=1e9)
    start = (50.0, 0.0, 0.0, 0.0)
    for tokens, observed_ms in ((1.0, 900.0), (5.0, 500.0), (9.0, 100.0)) * 10:
        fit.observe((1.0, tokens, 0.0, 0.0), observed_ms, start, now_ns=0)
    assert min(fit.weights(start)) == 0.0
    assert fit.value((1.0, 9.0, 0.0, 0.0), start) >= fit.value((1.0, 1.0, 0.0, 0.0), start)


def observed_provider(times_ms: list[float], prompt_tokens: int = 100) -> ProviderPredictor:
    """Return a predictor that has seen these times of one provider."""
    predictor = ProviderPredictor(SETTINGS)
    for time_ms in times_ms:
        predictor.observe(PROVIDER, "m", prompt_tokens, time_ms, now_ns=0)
    return predictor


def test_provider_says_the_median_of_ten() -> None:
    """Of ten times the lower middle one."""
    predictor = observed_provider([10.0 * count for count in range(1, 11)])
    assert predictor.predict_ms(PROVIDER, "m", 200, now_ns=0) == 50.0


def test_provider_says_nothing_of_nine() -> None:
    """Below the least number there is no value at all."""
    assert observed_provider([1.0] * 9).predict_ms(PROVIDER, "m", 200, now_ns=0) is None


def test_provider_keeps_sizes_and_models_apart() -> None:
    """Short prompts say nothing about long ones, nor one model about another."""
    predictor = observed_provider([7.0] * 10)
    assert predictor.predict_ms(PROVIDER, "m", 1_025, now_ns=0) is None
    assert predictor.predict_ms(PROVIDER, "other", 100, now_ns=0) is None


def test_provider_forgets_with_time() -> None:
    """At the edge of the window they count, past it not."""
    predictor = observed_provider([7.0] * 10)
    assert predictor.predict_ms(PROVIDER, "m", 1, now_ns=SETTINGS.window_ns) == 7.0
    assert predictor.predict_ms(PROVIDER, "m", 1, now_ns=SETTINGS.window_ns + 1) is None


def test_provider_keeps_no_more_histories_than_it_may() -> None:
    """The one that was unheard of longest goes."""
    predictor = ProviderPredictor(TtftSettings(providers_max=5))
    for number in range(20):
        predictor.observe(PROVIDER, f"m{number}", 1, 1.0, now_ns=0)
    assert len(predictor) == 5


def test_provider_absurd_times_are_clamped() -> None:
    """Zero counts as a millisecond."""
    predictor = observed_provider([0.0] * 5 + [float(2**32 - 1)] * 5)
    assert predictor.predict_ms(PROVIDER, "m", 1, now_ns=0) == 1.0
