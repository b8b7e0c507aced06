"""By what candidates are put in order, with numbers one can redo by hand."""

import re
from pathlib import Path

import pytest
from fleets import ChooserRig, fleet, provider, question, row, tier, tokens_of, worker_set
from known_prefixes import KnownPrefixes
from pipeline_rig import director, pipeline
from predicted_tiers import predicted, report

from inferencecache.clock import NS_PER_S
from inferencecache.picker.choice import Choice, Outcome, QosClass
from inferencecache.picker.choosing import FailureKind
from inferencecache.picker.decisions import Ending, FinalTokenReport, FirstTokenReport
from inferencecache.picker.fleet import ContextOverflow
from inferencecache.picker.load import EngineSignal
from inferencecache.picker.pipeline import PREFIX_MATCH, PROMPT_TOKENS
from inferencecache.picker.prefix import PrefixSource

ADDRESSES = ("a:1", "b:1")
WORKERS = worker_set("local", row("m", window=10_000), addresses=ADDRESSES)
VENDOR = provider("vendor", row("m"))


def times_of(choice: Choice) -> dict[str, float]:
    """Return the estimate of each candidate, in milliseconds."""
    assert choice.explanation is not None
    return {found.name: found.estimated_ms for found in choice.explanation.candidates}


def test_a_warm_worker_wins_as_long_as_it_is_worth_it() -> None:
    """8,000 tokens, 6,000 of them warm at a: worth 750 ms, that is 6,000 tokens in a queue."""
    prefix = KnownPrefixes({"a:1": 6_000}, prompt_tokens=8_000)
    rig = ChooserRig(fleet(tier("t", WORKERS)), prefix=prefix)
    rig.load("a:1", prefill_tokens=5_900)
    choice = rig.chosen()
    assert choice.name == "a:1"
    assert times_of(choice) == {"a:1": 50 + 7_900 / 8 + 1, "b:1": 50 + 8_000 / 8}
    assert tokens_of(choice.reason) == {
        "tier": "t",
        "rank": "estimated",
        "prefix": "precise",
        "matched": "6000/8000",
        "target": "m",
    }
    assert prefix.trace.placed_at == [("a:1", 50 + 7_900 / 8 + 1)]
    rig.load("a:1", prefill_tokens=100)
    assert rig.chosen().name == "b:1"


def test_whoever_is_told_of_a_placing_hears_how_it_goes_on() -> None:
    """Load, learning, warmth: the first token and the end, once each."""
    prefix = KnownPrefixes({}, prompt_tokens=800)
    rig = ChooserRig(fleet(tier("t", WORKERS)), prefix=prefix)
    choice = rig.chosen(question(output_tokens=100))
    assert rig.knowledge.loads.of("a:1") == (1, 800, 100)
    assert choice.follower is not None
    choice.follower.first_token(FirstTokenReport(observed_ttft_ms=90, upstream_status=200))
    assert rig.knowledge.loads.of("a:1") == (1, 0, 100)
    gaps = (1, *[0] * 14)
    final = FinalTokenReport(
        model="another",
        prompt_tokens=800,
        completion_tokens=2,
        cached_tokens=None,
        itl_bucket_counts=gaps,
        itl_bucket_layout=1,
    )
    choice.follower.ended(Ending.FINISHED, final)
    assert rig.knowledge.loads.of("a:1") == (0, 0, 0)
    assert (prefix.trace.statuses, prefix.trace.endings) == ([200], [Ending.FINISHED])
    assert rig.learnt.times == [(150.0, 90)]
    assert rig.learnt.gaps == [("a:1", gaps)]


def test_what_was_not_to_be_found_out_degrades_the_choice() -> None:
    """And the reason says what, beside further notes."""
    prefix = KnownPrefixes(degraded=("index_timeout",), note={"mm": "truncated"})
    choice = ChooserRig(fleet(tier("t", WORKERS)), prefix=prefix).chosen()
    assert choice.is_degraded
    tokens = tokens_of(choice.reason)
    assert (tokens["degraded"], tokens["mm"]) == ("index_timeout", "truncated")


def test_no_note_takes_the_place_of_what_a_reason_says_itself() -> None:
    """Of all that the page on picking names, whether or not it is said of this choice."""
    page = (Path(__file__).parents[4] / "docs" / "picker.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"^\| a destination \| (.*) \|$", page, re.MULTILINE)
    keys = set(re.findall(r"`(\w+)(?:=\w+)?`", re.sub(r"\([^)]*\)", "", named)))
    assert {"tier", "rank", "matched", "avoided", "degraded"} <= keys
    prefix = KnownPrefixes(note=dict.fromkeys(keys, "forged") | {"mm": "truncated"})
    reason = ChooserRig(fleet(tier("t", WORKERS)), prefix=prefix).chosen().reason
    assert "forged" not in reason
    assert tokens_of(reason)["mm"] == "truncated"


def test_of_a_provider_nobody_expects_a_prefix() -> None:
    """Nothing is missing, and nothing is said."""
    prefix = KnownPrefixes(degraded=("index_timeout",), note={"mm": "truncated"})
    choice = ChooserRig(fleet(tier("t", VENDOR)), prefix=prefix).chosen()
    assert not choice.is_degraded
    assert tokens_of(choice.reason)["prefix"] == "none"


def counted(tokens: int, overflow: ContextOverflow = ContextOverflow.LARGEST) -> ChooserRig:
    """Return a chooser whose prompts turn out to have so many tokens."""
    small = worker_set("small", row("m", window=1_000))
    large = worker_set("large", row("m", window=2_000))
    tiers = (tier("one", small), tier("two", large))
    return ChooserRig(fleet(*tiers, overflow=overflow), prefix=KnownPrefixes(prompt_tokens=tokens))


def test_a_counted_prompt_leaves_out_windows_that_an_estimate_did_not() -> None:
    """The estimate of 10 bytes fits everywhere; 1,001 tokens do not."""
    asked = question(prompt_bytes=10)
    assert counted(1_000).chosen(asked).name == "small:1"
    choice = counted(1_001).chosen(asked)
    assert choice.name == "large:1"
    assert choice.explanation is not None
    assert choice.explanation.is_counted
    barriers = {found.name: found.barrier for found in choice.explanation.candidates}
    assert barriers == {"large:1": "none", "small:1": "context"}


def test_a_counted_prompt_that_fits_nowhere_goes_to_the_largest_window() -> None:
    """Unless the pool refuses it."""
    choice = counted(2_001).chosen(question(prompt_bytes=10))
    assert choice.name == "large:1"
    assert tokens_of(choice.reason)["context"] == "exceeds"
    refusal = counted(2_001, ContextOverflow.REJECT).refused(question(prompt_bytes=10))
    assert (refusal.outcome, refusal.reason) == (Outcome.NO_WORKERS, "context=exceeds")


@pytest.mark.parametrize(
    ("tokens", "reason"), [(2_000, "candidates=suppressed"), (2_001, "context=exceeds")]
)
def test_a_counted_prompt_is_worth_another_try_where_it_fits(tokens: int, reason: str) -> None:
    """The larger window is left alone for a while; of what fits into neither nothing will come."""
    rig = counted(tokens, ContextOverflow.REJECT)
    large = rig.chooser.in_force.index.everything.matches("m")[1].rows[0].candidates[0]
    now_ns = rig.clock.monotonic_ns()
    for _ in range(3):
        rig.suppression.failed(large, FailureKind.FAILURE, now_ns, now_ns)
    assert rig.refused(question(prompt_bytes=10)).reason == reason


def test_an_engine_that_says_how_many_wait_is_believed_while_that_is_fresh() -> None:
    """Five that wait of six cost 106 ms; two seconds later nobody knows any more."""
    rig = ChooserRig(fleet(tier("t", WORKERS)))
    now_ns = rig.clock.monotonic_ns()
    rig.knowledge.signals.put("a:1", EngineSignal(waiting=5, running=1), now_ns)
    choice = rig.passed()
    assert choice.name == "b:1"
    assert times_of(choice) == {"a:1": 50 + 6 + 5 * 20, "b:1": 50}
    rig.clock.advance_ns(2 * NS_PER_S)
    assert rig.passed().name == "b:1"
    rig.clock.advance_ns(1)
    assert rig.passed().name == "a:1"


def test_requests_beyond_what_an_engine_does_at_once_wait() -> None:
    """Two places, four requests: two of them wait."""
    members = worker_set("s", row("m"), concurrency=2)
    rig = ChooserRig(fleet(tier("t", members)))
    rig.load("s:1", 4)
    assert times_of(rig.chosen()) == {"s:1": 50 + 4 + 2 * 20}


def test_predictions_rank_once_there_are_enough() -> None:
    """Nine reports are too few: then estimates have to do. With ten the fast one is known."""
    rig = ChooserRig(fleet(predicted("t", WORKERS)))
    for _ in range(10):
        choice = rig.chosen()
        assert tokens_of(choice.reason)["rank"] == "fallback"
        assert not choice.is_degraded
        report(choice, 40 if choice.name == "a:1" else 900)
    for _ in range(5):
        choice = rig.chosen()
        assert tokens_of(choice.reason)["rank"] == "predicted"
        assert choice.name == "a:1"
        report(choice, 40)


@pytest.mark.parametrize("status", [0, 400, 429, 500, 503])
def test_a_failed_answer_teaches_nothing(status: int) -> None:
    """D66: however fast it was, it is no evidence."""
    rig = ChooserRig(fleet(predicted("t", WORKERS)))
    for _ in range(12):
        choice = rig.chosen()
        report(choice, 1, status)
        rig.suppression.lift("default/local")
        rig.clock.advance_ns(NS_PER_S)
        assert tokens_of(choice.reason)["rank"] == "fallback"
    assert rig.learnt.times == []


@pytest.mark.parametrize(("ttft_ms", "learnt_ms"), [(0, 1.0), (2**32 - 1, 600_000.0)])
def test_absurd_times_are_clamped(ttft_ms: int, learnt_ms: float) -> None:
    """D67: between a millisecond and ten minutes, also where they are compared."""
    rig = ChooserRig(fleet(tier("t", VENDOR)))
    for _ in range(10):
        report(rig.chosen(), ttft_ms)
    choice = rig.chosen()
    assert times_of(choice) == {"provider:default/vendor": learnt_ms}
    assert {observed_ms for _, observed_ms in rig.learnt.times} == {learnt_ms}


def test_an_answer_of_one_piece_teaches_only_where_no_stream_does() -> None:
    """Its first byte comes with its last: 9 s, where streams begin after 80 ms."""
    rig = ChooserRig(fleet(tier("t", VENDOR)))
    for is_stream in [False] * 10 + [True] * 21:
        report(rig.chosen(question(is_stream=is_stream)), 80 if is_stream else 9_000)
    assert times_of(rig.passed()) == {"provider:default/vendor": 80}
    for _ in range(50):
        report(rig.chosen(), 9_000)
    assert times_of(rig.passed()) == {"provider:default/vendor": 80}
    rig.clock.advance_ns(181 * NS_PER_S)
    for _ in range(10):
        report(rig.chosen(), 9_000)
    assert times_of(rig.passed()) == {"provider:default/vendor": 9_000}


def test_a_provider_without_evidence_gets_nothing_from_a_predicted_tier() -> None:
    """There is nobody else, so the answer is no; an estimated tier has a value for it."""
    refusal = ChooserRig(fleet(predicted("t", VENDOR))).refused()
    assert (refusal.outcome, refusal.reason) == (Outcome.NO_WORKERS, "candidates=unpredicted")
    assert refusal.explanation is not None
    assert [found.barrier for found in refusal.explanation.candidates] == ["unpredicted"]
    both = ChooserRig(fleet(predicted("t", VENDOR, WORKERS)))
    assert {both.chosen().name for _ in range(4)} == {"a:1", "b:1"}


def test_a_later_tier_comes_before_the_fallback() -> None:
    """Only where every tier is empty are workers estimated that nothing is known of."""
    rig = ChooserRig(fleet(predicted("one", WORKERS), tier("two", VENDOR)))
    assert rig.chosen().tier == "two"


def test_a_batch_goes_where_less_is_to_do() -> None:
    """1,600 warm tokens are worth 200 ms, and 1,200 tokens ahead 150 ms; for a batch 300 ms."""
    prefix = KnownPrefixes({"a:1": 1_600}, prompt_tokens=8_000)
    rig = ChooserRig(fleet(tier("t", WORKERS)), prefix=prefix)
    rig.load("a:1", prefill_tokens=1_200)
    assert rig.passed().name == "a:1"
    choice = rig.passed(question(qos=QosClass.BATCH))
    assert choice.name == "b:1"
    assert times_of(choice)["a:1"] == 50 + 7_600 / 8 + 1


def test_a_rehearsal_leaves_nothing_behind() -> None:
    """No load, no turn, no trace, nothing under a limit, no turn to explore that is used up."""
    prefix = KnownPrefixes({"a:1": 10}, prompt_tokens=100)
    rig = ChooserRig(fleet(predicted("t", WORKERS)), prefix=prefix)
    rig.explore_draw = 0.0
    first = rig.choose(question(), is_rehearsal=True)
    assert [rig.choose(question(), is_rehearsal=True) for _ in range(5)] == [first] * 5
    assert isinstance(first, Choice)
    assert (first.name, first.follower) == ("a:1", None)
    assert tokens_of(first.reason)["matched"] == "10/100"
    assert (len(rig.knowledge.loads), prefix.trace.placed_at) == (0, [])
    rig.explore_draw = 1.0
    choice = rig.chosen(question(qos=QosClass.BATCH))
    assert "explored" not in tokens_of(choice.reason)
    assert choice.name == first.name


def test_a_full_tier_spills_to_a_provider_only_where_its_pool_says_so() -> None:
    """And then only what cannot wait; whoever may not spill waits at the workers."""
    small = worker_set("small", row("m"), concurrency=1)
    tiers = (tier("one", small), tier("two", VENDOR))
    for spills, qos, expected in (
        (False, QosClass.INTERACTIVE, "one"),
        (True, QosClass.INTERACTIVE, "two"),
        (True, QosClass.BATCH, "one"),
    ):
        rig = ChooserRig(fleet(*tiers, spills=spills))
        rig.load("small:1")
        choice = rig.chosen(question(qos=qos))
        assert choice.tier == expected
        assert tokens_of(choice.reason).get("saturated", "") == ("1" if expected == "one" else "")


def test_a_full_tier_leads_to_the_workers_of_a_later_one() -> None:
    """They cost nothing more, so nobody has to say so."""
    small = worker_set("small", row("m"), concurrency=1)
    spare = worker_set("spare", row("m"))
    rig = ChooserRig(fleet(tier("one", small), tier("two", VENDOR, spare)))
    rig.load("small:1")
    assert rig.chosen().name == "spare:1"


class Looks:
    """A Filter that keeps what it is given, and what was known of it."""

    def __init__(self) -> None:
        self.seen: list[tuple[object, object]] = []

    def filter(self, request: object, endpoints: list[object]) -> list[object]:
        """Keep everything."""
        self.seen = [
            (request.attributes.get(PROMPT_TOKENS), each.attributes.get(PREFIX_MATCH))
            for each in endpoints
        ]
        return endpoints


def test_plugins_are_told_what_is_known_of_the_prompt() -> None:
    """Its length, and of each worker what it has of it."""
    looks = Looks()
    prefix = KnownPrefixes({"a:1": 60}, prompt_tokens=100)
    rig = ChooserRig(
        fleet(tier("t", WORKERS, profile="")), director(pipeline(looks=looks)), prefix=prefix
    )
    rig.chosen()
    (length, match), (_, other) = looks.seen
    assert (length.count, length.is_exact) == (100, True)
    assert (match.matched_tokens, match.total_blocks, other.matched_tokens) == (60, 100, 0)


def test_without_a_source_plugins_are_told_of_no_match() -> None:
    """Which is not the same as a match of nothing."""
    looks = Looks()
    rig = ChooserRig(
        fleet(tier("t", WORKERS, profile="")),
        director(pipeline(looks=looks)),
        prefix=KnownPrefixes(source=PrefixSource.NONE),
    )
    rig.chosen(question(prompt_bytes=40))
    (length, match), _ = looks.seen
    assert (length.count, length.is_exact, match) == (10, False, None)
