"""What claims about caches are worth, learnt from what engines report as cached."""

from dataclasses import replace

import pytest
from fleets import question, row, worker_set
from prefix_rig import PrefixRig, exact, finish, matched, tokens

from inferencecache.clock import NS_PER_S
from inferencecache.picker.fleet import PrefixUse, Qualifier
from inferencecache.picker.prefix import PrefixSource
from inferencecache.picker.prefix.audit import CacheAudit
from inferencecache.settings.picker_prefix import PickerPrefixSettings

A, B, C, D = (f"10.0.0.{number}:8000" for number in range(1, 5))
SET = replace(worker_set("w", row("m"), addresses=[A, B, C, D]), block_size_tokens=16)
ASKED = question(tenant="t")
PRECISE, APPROXIMATE = PrefixSource.PRECISE, PrefixSource.APPROXIMATE
LENGTH = 8_000


def trust(rig: PrefixRig, name: str) -> float:
    """Return the trust in what the index says of a worker."""
    return rig.knowledge.audit.trust(name, PRECISE)


def test_the_worked_example_of_the_page() -> None:
    """Twenty-two requests that find nothing: 0.9 ** 22 = 0.098 is below 0.1, and counts as none."""
    audit = CacheAudit(PickerPrefixSettings())
    for reports in range(1, 23):
        audit.claimed(A, PRECISE, LENGTH, 0)
        expected = 0.9**reports if reports < 22 else 0.0
        assert audit.trust(A, PRECISE) == pytest.approx(expected)
    assert audit.trust(B, PRECISE) == audit.trust(A, APPROXIMATE) == 1.0


@pytest.mark.parametrize(
    ("cached_tokens", "share"),
    [(8_000, 1.0), (9_000, 1.0), (7_936, 1.0), (7_900, 0.9875), (0, 0.0)],
)
def test_rounding_to_blocks_is_no_error(cached_tokens: int, share: float) -> None:
    """64 tokens less are as good; more than that counts as it is."""
    audit = CacheAudit(PickerPrefixSettings(trust_step=1.0))
    audit.claimed(A, PRECISE, LENGTH, cached_tokens)
    assert audit.trust(A, PRECISE) == pytest.approx(share)


def test_small_claims_are_no_evidence() -> None:
    """Engines round to blocks."""
    audit = CacheAudit(PickerPrefixSettings(trust_step=1.0))
    audit.claimed(A, PRECISE, 64, 0)
    assert audit.trust(A, PRECISE) == 1.0


def test_a_restarted_engine_loses_its_undeserved_traffic_within_50_requests() -> None:
    """Each prompt is another one that the index says A holds; the engine holds none of them.

    Whoever has most of the prompt gets it; at a tie the four take turns. A had all of the traffic
    and gets its quarter of it at the latest from the 50th request on.
    """
    rig = PrefixRig(SET)
    sent = [_one_request(rig, number, warm_at_a=False) for number in range(98)]
    assert sent[:22] == [A] * 22
    assert sent[:50].count(A) == 22 + 28 / 4
    assert sent[50:].count(A) == 48 / 4
    assert trust(rig, A) == 0.0


def test_it_regains_trust_once_it_is_right_again() -> None:
    """Its share by turns is enough to find out."""
    rig = PrefixRig(SET)
    for number in range(60):
        _one_request(rig, number, warm_at_a=False)
    assert trust(rig, A) == 0.0
    sent = [_one_request(rig, 1_000 + number, warm_at_a=True) for number in range(40)]
    assert sent[-20:] == [A] * 20
    assert trust(rig, A) > 0.8


def _one_request(rig: PrefixRig, number: int, *, warm_at_a: bool) -> str:
    """Send a prompt that the index says A holds to whoever has most; return who that is."""
    rig.clock.advance_ns(10 * NS_PER_S)
    prompt = tokens(LENGTH, first=number * LENGTH)
    for name in (A, B, C, D):
        rig.report(name, tokens(64, first=10**9))
    rig.report(A, prompt)
    rig.reader.answer = exact(prompt)
    found = matched(rig.sense(ASKED).matches)
    turn = (A, B, C, D)[number % 4]
    chosen = max((turn, A, B, C, D), key=lambda name: found.get(name, 0))
    cached = LENGTH - 1 if chosen == A and warm_at_a else 0
    finish(rig.place(ASKED, chosen), cached)
    return chosen


def test_what_is_remembered_is_worth_what_has_proved_true() -> None:
    """The memory of a worker that reports nothing has a trust of its own."""
    blind = replace(SET, prefix=PrefixUse.APPROXIMATE)
    rig = PrefixRig(blind, settings=PickerPrefixSettings(trust_step=0.5))
    rig.reader.characters_answer = replace(exact(tokens(640), block_tokens=64), is_exact=False)
    finish(rig.place(ASKED, A), cached=0)
    assert rig.tokens_of(ASKED) == {A: 639}
    finish(rig.place(ASKED, A), cached=0)
    assert rig.tokens_of(ASKED) == {A: 319}
    assert trust(rig, A) == 1.0


@pytest.mark.parametrize("status", [500, 0])
def test_answers_that_failed_teach_nothing(status: int) -> None:
    """An error page has no cached tokens, and means nothing by it."""
    rig = PrefixRig(SET)
    rig.report(A, tokens(640))
    finish(rig.place(ASKED, A), cached=0, status=status)
    finish(rig.place(ASKED, A), cached=None)
    assert trust(rig, A) == 1.0
    assert rig.knowledge.audit.errors_tokens() == {}


def test_the_error_is_that_of_the_whole_signal() -> None:
    """Negative where the engine has less than was expected."""
    rig = PrefixRig(SET)
    rig.report(A, tokens(640))
    finish(rig.place(ASKED, A), cached=0)
    assert rig.knowledge.audit.errors_tokens() == {A: pytest.approx(-63.9)}
    finish(rig.place(ASKED, B), cached=639)
    assert rig.knowledge.audit.errors_tokens()[B] == pytest.approx(63.9)


def test_a_set_whose_engines_all_hold_what_the_index_does_not_know_is_suspect() -> None:
    """Its prompts are hashed in another way here than there; one good engine clears it."""
    rig = PrefixRig(SET, settings=PickerPrefixSettings(suspect_reports=20))
    for name in (A, B, C, D):
        rig.report(name, tokens(64, first=10**9))
    assert list(rig.knowledge.standing.qualifiers_of(SET)) == []
    for _ in range(20):
        for name in (A, B, C):
            rig.report(name, tokens(64, first=10**9))
            finish(rig.place(ASKED, name), cached=600)
        rig.clock.advance_ns(10 * NS_PER_S)
    assert list(rig.knowledge.standing.qualifiers_of(SET)) == [Qualifier.TOKENIZER_SUSPECT]
    rig.report(D, tokens(640))
    for _ in range(20):
        finish(rig.place(ASKED, D), cached=600)
    assert list(rig.knowledge.standing.qualifiers_of(SET)) == []


def test_a_burst_that_the_engine_has_not_reported_yet_is_not_suspicious() -> None:
    """It holds what was sent there just now, and the index has not heard of it."""
    rig = PrefixRig(SET)
    for name in (A, B, C, D):
        rig.report(name, tokens(64, first=10**9))
    for _ in range(30):
        finish(rig.place(ASKED, A), cached=600)
    assert list(rig.knowledge.standing.qualifiers_of(SET)) == []


def test_a_prompt_with_a_picture_says_nothing_of_the_tokenizer() -> None:
    """The engine holds more than the index was asked about."""
    rig = PrefixRig(SET, settings=PickerPrefixSettings(suspect_reports=1))
    rig.reader.answer = replace(exact(tokens(64)), prompt_tokens=640, cut="mm")
    rig.report(A, tokens(64, first=10**9))
    for _ in range(20):
        finish(rig.place(ASKED, A), cached=600)
        rig.clock.advance_ns(10 * NS_PER_S)
    assert list(rig.knowledge.standing.qualifiers_of(SET)) == []
