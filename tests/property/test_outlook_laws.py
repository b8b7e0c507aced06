"""Laws of the time to a first token, as a Pick sees it, whatever callers and engines say."""

from math import isfinite

from fleets import ChooserRig, fleet, provider, row, tier, worker_set
from hypothesis import given, settings
from hypothesis import strategies as st

from inferencecache.clock import ManualClock
from inferencecache.picker.choosing.outlook import Knowledge, Outlook
from inferencecache.picker.fleet import Candidate
from inferencecache.picker.load import EngineSignal, EngineSignals, LoadTable
from inferencecache.picker.prefix import CandidateMatch, PrefixFound, PrefixSource
from inferencecache.picker.ttft import Foresight
from inferencecache.settings.picker_load import PickerLoadSettings
from inferencecache.settings.picker_ttft import TtftSettings

TOKENS = st.integers(min_value=0, max_value=2_000_000)
REQUESTS = st.integers(min_value=0, max_value=400)
SIGNALS = st.none() | st.builds(
    EngineSignal,
    waiting=st.none() | st.integers(0, 2**31),
    running=st.none() | st.integers(0, 2**31),
)
WEIGHTS = st.sampled_from([0.01, 0.5, 1.0, 3.0, 1_000.0])
REPORTS = st.lists(st.tuples(TOKENS, TOKENS, st.integers(0, 2**32 - 1)), max_size=15)


def candidates(weight: float) -> list[Candidate]:
    """Return a worker and a provider."""
    worker = worker_set("s", row("m"), addresses=["a:1"], weights={"a:1": weight}, concurrency=64)
    rig = ChooserRig(fleet(tier("t", worker, provider("p", row("m")))))
    (match,) = rig.chooser.in_force.index.everything.matches("m")
    return [candidate for found in match.rows for candidate in found.candidates]


class World:
    """What is known of one worker and one provider."""

    def __init__(self, weight: float, signal: EngineSignal | None, requests: int) -> None:
        clock = ManualClock(0)
        self.knowledge = Knowledge(
            loads=LoadTable(PickerLoadSettings(), 10**12, clock),
            signals=EngineSignals(10**9),
            foresight=Foresight(TtftSettings()),
        )
        self.worker, self.vendor = candidates(weight)
        if signal is not None:
            self.knowledge.signals.put("a:1", signal, 0)
        self.load(requests, 10)

    def load(self, requests: int, tokens: int) -> None:
        """Give the worker so many requests more."""
        for _ in range(requests):
            self.knowledge.loads.place("a:1", tokens, 0)

    def outlook(self, prompt_tokens: int, matched: int, spread: float) -> Outlook:
        """Return what a Pick would see."""
        match = CandidateMatch(matched_tokens=matched, source=PrefixSource.PRECISE)
        found = PrefixFound(matches={"a:1": match}, source=PrefixSource.PRECISE)
        return Outlook(
            knowledge=self.knowledge,
            found=found,
            prompt_tokens=prompt_tokens,
            spread=spread,
            now_ns=0,
        )

    def learn(self, reports: list[tuple[int, int, int]]) -> None:
        """Let callers report what they like."""
        for prompt_tokens, matched, observed_ms in reports:
            outlook = self.outlook(prompt_tokens, matched, 1.0)
            for candidate in (self.worker, self.vendor):
                self.knowledge.foresight.observe(
                    candidate,
                    outlook.situation_of(candidate),
                    prompt_tokens=prompt_tokens,
                    is_stream=True,
                    observed_ms=observed_ms,
                    now_ns=0,
                )


def times(outlook: Outlook, candidate: Candidate) -> list[float]:
    """Return the estimate and, where there is one, the prediction; spread and not."""
    found = [outlook.estimated_ms(candidate), *outlook.estimates_ms([candidate])]
    predicted = [outlook.predicted_ms(candidate), *outlook.predictions_ms([candidate])]
    return found + [ms for ms in predicted if ms is not None]


@settings(max_examples=150, deadline=None)
@given(
    weight=WEIGHTS,
    signal=SIGNALS,
    requests=REQUESTS,
    reports=REPORTS,
    prompt=TOKENS,
    matched=TOKENS,
    spread=st.sampled_from([1.0, 2.0, 50.0]),
    more=st.integers(1, 100_000),
)
def test_a_time_is_a_number_that_grows_with_the_work(  # noqa: PLR0917 - what it depends on
    weight: float,
    signal: EngineSignal | None,
    requests: int,
    reports: list[tuple[int, int, int]],
    prompt: int,
    matched: int,
    spread: float,
    more: int,
) -> None:
    """Never below 0, always finite; more to compute, less matched and more ahead are no faster."""
    world = World(weight, signal, requests)
    world.learn(reports)
    base = world.outlook(prompt, matched, spread)
    before = times(base, world.worker)
    for found in (before, times(base, world.vendor)):
        assert all(isfinite(ms) and ms >= 0.0 for ms in found)
    longer = times(world.outlook(prompt + more, matched, spread), world.worker)
    colder = times(world.outlook(prompt, max(0, matched - more), spread), world.worker)
    world.load(1, more)
    busier = times(world.outlook(prompt, matched, spread), world.worker)
    for after in (longer, colder, busier):
        assert all(new >= old for old, new in zip(before, after, strict=True))


@settings(max_examples=50, deadline=None)
@given(
    busy=st.sets(st.integers(0, 5)),
    warm=st.dictionaries(st.integers(0, 5), st.integers(0, 900)),
    weights=st.lists(WEIGHTS, min_size=6, max_size=6),
)
def test_many_are_estimated_as_each_by_itself(
    busy: set[int], warm: dict[int, int], weights: list[float]
) -> None:
    """Those that are taken for alike are."""
    names = [f"{number}:1" for number in range(6)]
    worker = worker_set(
        "s", row("m"), addresses=names, weights=dict(zip(names, weights, strict=True))
    )
    rig = ChooserRig(fleet(tier("t", worker, provider("p", row("m")))))
    for number in busy:
        rig.load(names[number], 2, prefill_tokens=300)
    (match,) = rig.chooser.in_force.index.everything.matches("m")
    found = [candidate for rows in match.rows for candidate in rows.candidates]
    matches = {
        names[number]: CandidateMatch(matched_tokens=tokens, source=PrefixSource.PRECISE)
        for number, tokens in warm.items()
    }
    outlook = Outlook(
        knowledge=rig.knowledge, found=PrefixFound(matches=matches), prompt_tokens=1_000, now_ns=0
    )
    assert outlook.estimates_ms(found) == [outlook.estimated_ms(each) for each in found]


@settings(max_examples=50, deadline=None)
@given(signal=SIGNALS, requests=REQUESTS, waiting=st.integers(0, 1_000))
def test_a_longer_queue_is_no_faster(
    signal: EngineSignal | None, requests: int, waiting: int
) -> None:
    """Whatever else the engine says."""
    world = World(1.0, signal, requests)
    running = None if signal is None else signal.running
    found = []
    for count in (waiting, waiting + 1):
        world.knowledge.signals.put("a:1", EngineSignal(waiting=count, running=running), 0)
        found.append(world.outlook(100, 0, 1.0).estimated_ms(world.worker))
    assert found[0] < found[1]
