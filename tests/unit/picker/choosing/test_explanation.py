"""What is kept of a Pick for people: it is put into words when they read it, as it was then."""

import gc

from fleets import ChooserRig, fleet, provider, question, row, tier, worker_set
from known_prefixes import KnownPrefixes

from inferencecache.picker.choice import Choice
from inferencecache.picker.explanation import ExplainedCandidate, Explanation
from inferencecache.picker.fleet import Candidate, ContextOverflow, Fleet, Provider, WorkerSet
from inferencecache.picker.load import EngineSignal
from inferencecache.picker.pipeline import EndpointView
from inferencecache.settings.picker_load import PickerLoadSettings

WORKERS = worker_set("w", row("m"), addresses=("a:1", "b:1"), weights={"b:1": 2.0}, concurrency=4)
VENDOR = provider("vendor", row("m"))


def explained(rig: ChooserRig) -> Explanation:
    """Return how a Pick came about."""
    explanation = rig.chosen(question()).explanation
    assert explanation is not None
    return explanation


def rig_of(in_force: Fleet) -> ChooserRig:
    """Return a rig where one worker is warm, and both are busy."""
    rig = ChooserRig(in_force, prefix=KnownPrefixes({"a:1": 600}, prompt_tokens=800))
    rig.load("a:1", 6, prefill_tokens=100)
    rig.load("b:1", 1, prefill_tokens=3_200)
    return rig


def test_rows_say_what_was_so_then() -> None:
    """By hand: 200 + 600 tokens at 8 a ms, 6 requests of which 2 wait; at b, half of the rest."""
    rig = rig_of(fleet(tier("local", WORKERS), tier("vendor", VENDOR)))
    told = explained(rig)
    rig.load("b:1", 50, prefill_tokens=9_000)
    rig.knowledge.signals.put("a:1", EngineSignal(waiting=9, running=9), rig.clock.monotonic_ns())
    rig.install(fleet(tier("other", worker_set("x", row("m")))))
    assert list(told.candidates) == [
        ExplainedCandidate(
            name="a:1",
            tier="local",
            model="m",
            barrier="none",
            in_flight=6,
            queued_tokens=600,
            requests=6,
            waiting=2,
            prompt_tokens=800,
            matched_tokens=600,
            source="precise",
            estimated_ms=50 + 800 / 8 + 6 + 2 * 20,
            predicted_ms=None,
            rank=1,
            score=50 + 800 / 8 + 6 + 2 * 20,
        ),
        ExplainedCandidate(
            name="b:1",
            tier="local",
            model="m",
            barrier="none",
            in_flight=1,
            queued_tokens=3_200,
            requests=1,
            waiting=0,
            prompt_tokens=800,
            matched_tokens=0,
            source="none",
            estimated_ms=50 + (800 + 1_600) / 8 + 0.5,
            predicted_ms=None,
            rank=2,
            score=50 + (800 + 1_600) / 8 + 0.5,
        ),
        ExplainedCandidate(
            name="provider:default/vendor",
            tier="vendor",
            model="m",
            barrier="none",
            in_flight=0,
            queued_tokens=0,
            requests=0,
            waiting=0,
            prompt_tokens=800,
            matched_tokens=0,
            source="none",
            estimated_ms=rig.knowledge.foresight.settings.provider_ms,
            predicted_ms=None,
            rank=0,
            score=0.0,
        ),
    ]
    assert (len(told.candidates), told.candidates_total) == (3, 3)


def test_what_engines_said_counts_as_of_then() -> None:
    """Of two numbers the larger; what the engine says later is another Pick's matter."""
    rig = rig_of(fleet(tier("local", WORKERS)))
    rig.knowledge.signals.put("b:1", EngineSignal(waiting=3, running=5), rig.clock.monotonic_ns())
    told = explained(rig)
    rig.knowledge.signals.put("b:1", EngineSignal(waiting=0, running=0), rig.clock.monotonic_ns())
    by_name = {each.name: each for each in told.candidates}
    assert (by_name["a:1"].waiting, by_name["b:1"].waiting) == (2, 3)
    assert by_name["b:1"].estimated_ms == 50 + (800 + 1_600) / 8 + 8 / 2 + 20 * 3 / 2
    assert (by_name["b:1"].in_flight, by_name["b:1"].requests) == (1, 8)


def test_what_an_engine_said_too_long_ago_explains_no_refusal() -> None:
    """Of a request that fits nowhere, and so is refused before anybody looks at its prompt."""
    small = worker_set("w", row("m", window=100))
    rig = ChooserRig(fleet(tier("local", small), overflow=ContextOverflow.REJECT))
    rig.knowledge.signals.put("w:1", EngineSignal(waiting=9), rig.clock.monotonic_ns())
    waiting = []
    for _ in range(2):
        refusal = rig.refused(question(prompt_tokens=101))
        assert refusal.reason == "context=exceeds"
        assert refusal.explanation is not None
        waiting += [each.waiting for each in refusal.explanation.candidates]
        rig.clock.advance_ns(PickerLoadSettings().signal_stale_ns + 1)
    assert waiting == [9, 0]


def test_the_same_is_said_however_it_is_known() -> None:
    """That nobody waits, by what this picker gave an engine or since the engine says so, too."""
    rig = rig_of(fleet(tier("local", WORKERS)))
    before = rig.choose(question(), is_rehearsal=True)
    rig.knowledge.signals.put("b:1", EngineSignal(waiting=0, running=1), rig.clock.monotonic_ns())
    assert rig.choose(question(), is_rehearsal=True).explanation == before.explanation
    rig.knowledge.signals.put("b:1", EngineSignal(waiting=1, running=1), rig.clock.monotonic_ns())
    assert rig.choose(question(), is_rehearsal=True).explanation != before.explanation


def test_an_explanation_does_not_hold_its_fleet() -> None:
    """Thousands of them outlive fleets that are replaced, and those may be large."""
    told = explained(rig_of(fleet(tier("local", WORKERS), tier("vendor", VENDOR))))
    seen: dict[int, object] = {}
    waiting: list[object] = [told]
    while waiting:
        each = waiting.pop()
        if id(each) not in seen and not isinstance(each, type):
            seen[id(each)] = each
            waiting += gc.get_referents(each)
    kinds = {type(each) for each in seen.values()}
    assert kinds.isdisjoint({Candidate, WorkerSet, Provider, Fleet, EndpointView, Choice})
    assert len(told.candidates) == 3
