"""What a Pick sees of a worker, in numbers that can be redone by hand."""

import pytest
from fleets import ChooserRig, fleet, row, tier, worker_set

from inferencecache.clock import ManualClock
from inferencecache.picker.choosing.outlook import Knowledge, Outlook
from inferencecache.picker.fleet import Candidate
from inferencecache.picker.load import EngineSignal, EngineSignals, LoadTable
from inferencecache.picker.prefix import CandidateMatch, PrefixFound, PrefixSource
from inferencecache.picker.ttft import Foresight, Situation
from inferencecache.settings.picker_load import PickerLoadSettings
from inferencecache.settings.picker_ttft import TtftSettings

A = "a:1"
PROMPT_TOKENS = 8_000
MATCHED_TOKENS = 6_000


def worker(weight: float) -> Candidate:
    """Return a worker with 50 ms and 8 tokens a millisecond."""
    members = worker_set("s", row("m"), addresses=[A], weights={A: weight}, concurrency=64)
    rig = ChooserRig(fleet(tier("t", members)))
    (match,) = rig.chooser.in_force.index.everything.matches("m")
    (candidate,) = [each for found in match.rows for each in found.candidates]
    return candidate


def knowledge() -> Knowledge:
    """Return what is known: four requests of 800 tokens each, of which two wait."""
    loads = LoadTable(PickerLoadSettings(), 10**12, ManualClock(0))
    for _ in range(4):
        loads.place(A, 800, 0)
    signals = EngineSignals(10**9)
    signals.put(A, EngineSignal(waiting=2, running=2), 0)
    return Knowledge(loads=loads, signals=signals, foresight=Foresight(TtftSettings()))


def outlook(known: Knowledge, spread: float) -> Outlook:
    """Return what a Pick sees of whom."""
    match = CandidateMatch(matched_tokens=MATCHED_TOKENS, source=PrefixSource.PRECISE)
    found = PrefixFound(matches={A: match}, source=PrefixSource.PRECISE)
    return Outlook(knowledge=known, found=found, prompt_tokens=PROMPT_TOKENS, spread=spread)


@pytest.mark.parametrize(
    ("weight", "spread", "expected_ms"),
    [
        (1.0, 1.0, 50 + (2_000 + 3_200) / 8 + 4 + 2 * 20),
        (2.0, 1.0, 50 + (2_000 + 1_600) / 8 + 2 + 20),
        (2.0, 3.0, 50 + (2_000 + 4_800) / 8 + 6 + 60),
    ],
)
def test_what_others_have_to_do_counts_by_weight_and_spread(
    weight: float, spread: float, expected_ms: float
) -> None:
    """Half of it at a worker of twice the share, three times for who wants little to be done."""
    assert outlook(knowledge(), spread).estimates_ms([worker(weight)]) == [expected_ms]


def test_predictions_spread_like_estimates() -> None:
    """What others have to do counts as often, by weights that were learnt."""
    known, candidate = knowledge(), worker(1.0)
    for number in range(20):
        known.foresight.observe(
            candidate,
            Situation(1_000, 1_000.0 * number, number, 0.0),
            prompt_tokens=1_000,
            is_stream=True,
            observed_ms=100 + 300 * number,
            now_ns=0,
        )
    (plain_ms,) = outlook(known, 1.0).predictions_ms([candidate])
    (spread_ms,) = outlook(known, 3.0).predictions_ms([candidate])
    three_times = Situation(2_000, 3 * 3_200, 3 * 4, 3 * 2)

    assert spread_ms == known.foresight.predicted_ms(candidate, three_times, PROMPT_TOKENS, 0)
    assert plain_ms is not None
    assert spread_ms is not None
    assert spread_ms > 2 * plain_ms
