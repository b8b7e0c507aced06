"""Now and then a request goes where nobody was heard of for long, so that evidence does not end."""

from dataclasses import replace

import pytest
from fleets import ChooserRig, fleet, provider, question, row, tier, tokens_of, worker_set
from predicted_tiers import predicted, report

from inferencecache.clock import NS_PER_S
from inferencecache.picker.choice import QosClass
from inferencecache.picker.fleet import Fleet
from inferencecache.settings.picker_choice import PickerChoiceSettings

WORKERS = worker_set("local", row("m"), addresses=["a:1", "b:1"])
VENDOR = provider("vendor", row("m"))


def exploring(in_force: Fleet, share: float = 0.01) -> ChooserRig:
    """Return a chooser that explores when its draw is below *share*."""
    return ChooserRig(in_force, settings=PickerChoiceSettings(explore_share=share))


def known_fast(rig: ChooserRig) -> None:
    """Let a be known to be fast, and b to be slow."""
    for _ in range(20):
        rig.clock.advance_ns(NS_PER_S)
        choice = rig.chosen()
        report(choice, 40 if choice.name == "a:1" else 900)
    assert rig.passed().name == "a:1"


def test_now_and_then_the_one_unheard_of_longest_is_tried() -> None:
    """A request that can wait takes its turn at once."""
    rig = exploring(fleet(predicted("t", WORKERS)))
    known_fast(rig)
    rig.explore_draw = 0.009
    choice = rig.passed(question(qos=QosClass.BATCH))
    assert choice.name == "b:1"
    assert tokens_of(choice.reason)["explored"] == "1"
    rig.explore_draw = 0.01
    assert rig.passed(question(qos=QosClass.BATCH)).name == "a:1"


def test_a_request_that_cannot_wait_explores_only_where_nobody_else_does() -> None:
    """Its first turn it leaves to others, its second one it takes."""
    rig = exploring(fleet(predicted("t", WORKERS)))
    known_fast(rig)
    rig.explore_draw = 0.0
    assert rig.passed().name == "a:1"
    rig.explore_draw = 1.0
    assert rig.passed(question(qos=QosClass.DEFERRABLE)).name == "b:1"
    assert rig.passed(question(qos=QosClass.DEFERRABLE)).name == "a:1"
    rig.explore_draw = 0.0
    assert [rig.passed().name for _ in range(3)] == ["a:1", "b:1", "b:1"]


def test_one_worker_alone_is_tried_although_others_would_take_it() -> None:
    """Nobody knows how fast it is, so a provider gets all, until ten that explore have told."""
    alone = worker_set("alone", row("m"), addresses=["a:1"])
    rig = exploring(fleet(predicted("one", alone), tier("two", VENDOR)))
    rig.explore_draw = 0.0
    for _ in range(10):
        choice = rig.chosen(question(qos=QosClass.BATCH))
        assert (choice.tier, tokens_of(choice.reason)["explored"]) == ("one", "1")
        report(choice, 40)
    rig.explore_draw = 1.0
    assert tokens_of(rig.passed().reason)["rank"] == "predicted"


@pytest.mark.parametrize("rank", [predicted, tier])
def test_a_provider_is_tried_only_where_its_tier_says_so(rank: object) -> None:
    """It costs money; workers of an estimated tier need no evidence."""
    plain = rank("t", WORKERS, VENDOR)
    rig = exploring(fleet(plain))
    rig.explore_draw = 0.0
    assert {rig.passed().name for _ in range(6)} == {"a:1", "b:1"}
    allowed = exploring(fleet(replace(plain, explores=True)))
    allowed.explore_draw = 0.0
    assert "provider:default/vendor" in {allowed.passed().name for _ in range(6)}
