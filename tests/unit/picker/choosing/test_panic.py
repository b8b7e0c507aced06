"""What is tried where everybody is left alone for failures, and what that leads to."""

from failing_fleets import VENDOR, WORKERS, Fleeting, local_only, vendors
from fleets import ChooserRig, fleet, tier, tokens_of

from inferencecache.picker.choice import Outcome


def test_when_all_workers_are_suppressed_one_is_tried_all_the_same() -> None:
    """Better a try than a total outage: DEGRADED, and the reason says so."""
    world = local_only("a:1", "b:1")
    world.fail(6)
    choice = world.rig.chosen()
    assert choice.is_degraded
    assert tokens_of(choice.reason)["panic"] == "1"
    world.wait(1)
    world.status(choice, 200)
    fine = world.rig.chosen()
    assert (fine.name, fine.is_degraded) == (choice.name, False)


def test_tries_for_want_of_anybody_else_make_nothing_worse() -> None:
    """An outage of seconds costs seconds: the second worker is back when the first one is."""
    world = local_only("a:1", "b:1")
    world.fail(6)
    assert sorted(world.fail(20)) == ["a:1"] * 10 + ["b:1"] * 10
    assert len(world.rig.told.edges) == 2
    world.wait(5)
    names = {world.rig.chosen().name, world.rig.chosen().name}
    assert names == {"a:1", "b:1"}
    assert "panic" in tokens_of(world.rig.chosen().reason)


def test_what_was_tried_meanwhile_is_too_old_when_it_fails_late() -> None:
    """The request that tries it behind its time has the say."""
    world = local_only("a:1")
    world.fail(3)
    world.wait(1)
    tried = world.rig.chosen()
    world.wait(4)
    trying = world.rig.chosen()
    assert not trying.is_degraded
    world.status(tried, 503)
    assert len(world.rig.told.edges) == 1
    world.status(trying, 503)
    assert len(world.rig.told.edges) == 2
    world.wait(9.9)
    assert world.rig.chosen().is_degraded
    world.wait(0.1)
    assert not world.rig.chosen().is_degraded


def test_tries_of_a_worker_that_rests_do_not_lengthen_its_rest() -> None:
    """A second after the first 429, however often it says so within that second."""
    world = local_only("a:1")
    world.fail(20, 429)
    assert world.rig.chosen().is_degraded
    world.wait(1)
    assert not world.rig.chosen().is_degraded


def test_a_provider_takes_over_before_anybody_panics() -> None:
    """And where it is suppressed too, the workers are tried, not the provider."""
    world = Fleeting(ChooserRig(fleet(tier("t", WORKERS), tier("v", VENDOR))))
    world.fail(6)
    assert world.rig.chosen().name == "provider:default/vendor"
    world.fail(2, 401)
    choice = world.rig.chosen()
    assert (choice.tier, choice.is_degraded) == ("t", True)


def test_providers_that_are_suppressed_are_not_tried() -> None:
    """F56: when both are, nobody is chosen, until the first of them is due."""
    world = vendors()
    world.fail(3)
    world.fail(2, 401)
    refusal = world.rig.refused()
    assert (refusal.outcome, refusal.reason) == (Outcome.NO_WORKERS, "candidates=suppressed")
    world.wait(5)
    assert world.rig.chosen().name == "provider:default/vendor"


def test_providers_that_rest_are_not_tried() -> None:
    """The reason is another one."""
    world = vendors()
    world.fail(2, 429)
    assert world.rig.refused().reason == "candidates=resting"
