"""Who tries a destination again that has failed, and what of a changed fleet is remembered."""

from failing_fleets import Fleeting, local_only
from fleets import ChooserRig, fleet, row, tier, worker_set

from inferencecache.picker.decisions import Ending


def test_a_try_that_meets_a_busy_worker_leaves_the_next_try_to_others() -> None:
    """Once it is over and the worker has rested, and not only when its lease ends."""
    world = local_only("a:1")
    world.fail(3)
    world.wait(5)
    trying = world.rig.chosen()
    assert not trying.is_degraded
    world.status(trying, 429)
    assert world.rig.chosen().is_degraded
    assert trying.follower is not None
    trying.follower.ended(Ending.EXPIRED, None)
    world.wait(1)
    assert not world.rig.chosen().is_degraded


def test_a_worker_that_leaves_its_set_is_forgotten_and_the_others_are_not() -> None:
    """Endpoints come and go in a file of their own, and the set stays what it was."""
    both = worker_set("local", row("m"), addresses=["a:1", "b:1"])
    world = Fleeting(ChooserRig(fleet(tier("t", both))))
    world.fail(6)
    assert len(world.rig.suppression) == 2
    left = worker_set("local", row("m"), addresses=["a:1"])
    world.rig.install(fleet(tier("t", left)))
    assert world.rig.told.edges[2:] == [("default/local/b:1", "gone")]
    assert world.rig.chosen().is_degraded
    world.rig.install(fleet(tier("t", both)))
    assert (world.rig.chosen().name, world.rig.chosen().is_degraded) == ("b:1", False)
