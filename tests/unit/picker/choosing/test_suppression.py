"""Who is left alone after failures, for how long, and what brings it back."""

import pytest
from failing_fleets import SIBLING, VENDOR, WORKERS, Fleeting, local_only, vendors
from fleets import ChooserRig, fleet, provider, question, row, tier
from reports import FINAL

from inferencecache.picker.choice import Outcome
from inferencecache.picker.decisions import Ending
from inferencecache.picker.fleet import Qualifier


@pytest.mark.parametrize(
    ("status", "times"),
    [(401, 2), (402, 2), (403, 2), (404, 3), (500, 3), (503, 3), (599, 3), (0, 3)],
)
def test_a_provider_that_fails_is_left_alone(status: int, times: int) -> None:
    """D66, F56: after so many failures, from the very next Pick on."""
    world = vendors()
    assert world.fail(times, status) == ["provider:default/vendor"] * times
    assert world.rig.chosen().name == "provider:default/sibling"
    assert len(world.rig.told.edges) == 1


@pytest.mark.parametrize("status", [100, 200, 204, 302, 400, 408, 413, 422])
def test_what_is_not_the_providers_fault_counts_nothing(status: int) -> None:
    """D66, F56: a bad request stays the client's."""
    world = vendors()
    assert world.fail(10, status) == ["provider:default/vendor"] * 10
    assert len(world.rig.suppression) == 0


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_what_a_worker_refuses_counts_nothing(status: int) -> None:
    """It needs no key and has the models of its set."""
    world = local_only()
    world.fail(10, status)
    assert len(world.rig.suppression) == 0


@pytest.mark.parametrize("reason", ["BACKEND_UNRESOLVED", "BACKEND_UNAUTHORIZED"])
def test_callers_report_a_backend_that_does_not_work(reason: str) -> None:
    """E73: the qualifier shows at once, the suppression after the second report."""
    world = vendors()
    qualifier = {
        "BACKEND_UNRESOLVED": Qualifier.BACKEND_UNRESOLVED,
        "BACKEND_UNAUTHORIZED": Qualifier.BACKEND_UNAUTHORIZED,
    }[reason]
    world.abort(world.rig.chosen(), reason)
    assert world.rig.suppression.qualifiers_of(VENDOR) == {qualifier}
    world.wait(1)
    world.abort(world.rig.chosen(), reason)
    assert world.rig.suppression.qualifiers_of(VENDOR) == {qualifier, Qualifier.SUPPRESSED}
    assert world.rig.suppression.qualifiers_of(SIBLING) == set()
    assert world.rig.chosen().name == "provider:default/sibling"
    assert world.rig.refused(question("other")).reason == "candidates=suppressed"


@pytest.mark.parametrize("status", [401, 402, 403])
def test_a_refusal_told_by_status_and_abort_is_one_failure(status: int) -> None:
    """D66, E73: callers say both of one request; the second request is the last."""
    world = vendors()
    for _ in range(2):
        world.wait(1)
        choice = world.rig.chosen()
        assert choice.name == "provider:default/vendor"
        world.status(choice, status)
        world.abort(choice, "BACKEND_UNAUTHORIZED")
    world.wait(1)
    assert world.rig.chosen().name == "provider:default/sibling"


@pytest.mark.parametrize("reason", ["BACKEND_UNRESOLVED", "BACKEND_UNAUTHORIZED"])
def test_the_same_about_a_worker_touches_nobody(reason: str) -> None:
    """E74: a worker has no backend."""
    world = Fleeting(ChooserRig(fleet(tier("t", WORKERS), tier("v", VENDOR))))
    for _ in range(5):
        world.wait(1)
        world.abort(world.rig.chosen(), reason)
    assert len(world.rig.suppression) == 0


@pytest.mark.parametrize("reason", ["NOT_DISPATCHED", "PULL_FAILED", "REASON_UNSPECIFIED", "OTHER"])
def test_other_aborts_touch_nobody(reason: str) -> None:
    """E75: they say nothing about where the request was to go."""
    world = vendors()
    for _ in range(5):
        world.wait(1)
        world.abort(world.rig.chosen(), reason)
    choice = world.rig.chosen()
    assert choice.follower is not None
    choice.follower.ended(Ending.EXPIRED, None)
    assert len(world.rig.suppression) == 0


def test_a_wrong_name_leaves_the_providers_other_models_alone() -> None:
    """404 counts against one model, a refused key against all."""
    world = vendors()
    world.fail(3, 404)
    assert world.rig.chosen(question("other")).name == "provider:default/vendor"
    world.fail(2, 401, model="other")
    assert world.rig.refused(question("other")).outcome is Outcome.NO_WORKERS


def test_a_worker_that_fails_leaves_the_others_their_work() -> None:
    """Three in a row, with a good one between them none."""
    world = local_only("a:1", "b:1")
    for status in (503, 503, 200, 503, 503):
        world.wait(1)
        choice = world.rig.chosen()
        while choice.name != "a:1":
            choice = world.rig.chosen()
        world.status(choice, status)
    assert {world.rig.chosen().name for _ in range(4)} == {"a:1", "b:1"}
    assert world.rig.told.edges == []
    while world.rig.told.edges == []:
        world.fail(1, 0)
    assert world.rig.told.edges == [("default/local/a:1", "failure")]
    assert {world.rig.chosen().name for _ in range(4)} == {"b:1"}


def test_suppressions_last_twice_as_long_each_time() -> None:
    """From 5 s up to 300 s; between them one request tries."""
    world = vendors()
    world.fail(3)
    for expected_s in (5, 10, 20, 40, 80, 160, 300, 300):
        world.wait(expected_s - 0.01)
        assert world.rig.chosen().name == "provider:default/sibling"
        world.wait(0.01)
        assert world.fail(1) == ["provider:default/vendor"]


@pytest.mark.parametrize(("jitter", "seconds"), [(-1.0, 4), (1.0, 6)])
def test_suppressions_end_at_different_times(jitter: float, seconds: int) -> None:
    """By up to a fifth, so that not everything comes back at once."""
    world = vendors()
    world.rig.jitter = jitter
    world.fail(3)
    world.wait(seconds - 0.01)
    assert world.rig.chosen().name == "provider:default/sibling"
    world.wait(0.01)
    assert world.rig.chosen().name == "provider:default/vendor"


def test_one_request_at_a_time_tries() -> None:
    """It keeps the others away until it says something, or its lease ends."""
    world = vendors()
    world.fail(3)
    world.wait(5)
    names = [world.rig.chosen().name for _ in range(3)]
    assert names == ["provider:default/vendor", *["provider:default/sibling"] * 2]
    world.wait(29.9)
    assert world.rig.chosen().name == "provider:default/sibling"
    world.wait(0.1)
    trying = world.rig.chosen()
    assert trying.name == "provider:default/vendor"
    world.abort(trying, "NOT_DISPATCHED")
    trying = world.rig.chosen()
    assert trying.name == "provider:default/vendor"
    world.status(trying, 200)
    assert {world.rig.chosen().name for _ in range(3)} == {"provider:default/vendor"}


@pytest.mark.parametrize("fails_between", [False, True])
def test_who_has_tried_for_too_long_lets_nobody_else_in(*, fails_between: bool) -> None:
    """Its lease was over; the one that tries now keeps others away until it says something."""
    world = vendors()
    world.fail(3)
    world.wait(5)
    silent = world.rig.chosen()
    world.wait(30)
    trying = world.rig.chosen()
    if fails_between:
        world.status(trying, 503)
        world.wait(10)
        trying = world.rig.chosen()
    assert (silent.name, trying.name) == ("provider:default/vendor",) * 2
    world.abort(silent, "NOT_DISPATCHED")
    assert world.rig.chosen().name == "provider:default/sibling"
    world.abort(trying, "NOT_DISPATCHED")
    assert world.rig.chosen().name == "provider:default/vendor"


def test_a_good_token_forgets_everything() -> None:
    """Counts, times and qualifiers: the next suppression is the first again."""
    world = vendors()
    world.fail(2, 401)
    world.wait(5)
    world.fail(1, 403)
    world.wait(10)
    world.fail(1, 200)
    assert world.rig.suppression.qualifiers_of(VENDOR) == set()
    assert world.rig.told.edges[-1] == ("provider:default/vendor", "worked")
    world.fail(1, 401)
    assert world.rig.chosen().name == "provider:default/vendor"
    world.fail(1, 401)
    world.wait(5)
    assert world.rig.chosen().name == "provider:default/vendor"


def test_an_answer_that_is_only_reported_at_its_end_is_good_too() -> None:
    """Whoever never reports first tokens must not leave it suppressed for ever."""
    world = vendors()
    world.fail(3)
    world.wait(5)
    trying = world.rig.chosen()
    assert trying.follower is not None
    trying.follower.ended(Ending.FINISHED, FINAL)
    assert len(world.rig.suppression) == 0


def test_the_status_counts_and_not_what_comes_behind_it() -> None:
    """Words of an error are tokens, too."""
    world = vendors()
    for _ in range(3):
        world.wait(1)
        choice = world.rig.chosen()
        world.wait(1)
        world.status(choice, 503)
        assert choice.follower is not None
        choice.follower.ended(Ending.FINISHED, FINAL)
    assert world.rig.chosen().name == "provider:default/sibling"


def test_what_was_under_way_is_not_held_against_it_twice() -> None:
    """Fifty requests from before do not make fifty suppressions."""
    world = vendors()
    choices = [world.rig.chosen() for _ in range(50)]
    world.wait(1)
    for choice in choices:
        world.status(choice, 503)
    assert len(world.rig.told.edges) == 1
    world.wait(5)
    assert world.rig.chosen().name == "provider:default/vendor"


def test_a_destination_that_is_busy_rests() -> None:
    """A second after the first 429, then twice as long up to 30 s; it is not suppressed."""
    world = vendors()
    for expected_s in (1, 2, 4, 8, 16, 30, 30):
        assert world.fail(1, 429) == ["provider:default/vendor"]
        world.wait(expected_s - 0.01)
        assert world.rig.chosen().name == "provider:default/sibling"
        world.wait(0.01)
    assert world.rig.told.edges == []
    assert world.rig.suppression.qualifiers_of(VENDOR) == set()
    world.fail(1, 200)
    world.fail(1, 429)
    world.wait(1)
    assert world.rig.chosen().name == "provider:default/vendor"


def test_a_changed_object_is_as_good_as_new() -> None:
    """An unchanged one is not, and one that is gone leaves nothing behind."""
    world = vendors()
    world.fail(3)
    world.rig.install(fleet(tier("one", VENDOR), tier("two", SIBLING)))
    assert world.rig.chosen().name == "provider:default/sibling"
    changed = provider("vendor", row("gpt", "m"), generation="2")
    world.rig.install(fleet(tier("one", changed), tier("two", SIBLING)))
    assert world.rig.told.edges[-1] == ("provider:default/vendor/gpt", "changed")
    assert world.rig.chosen().name == "provider:default/vendor"
    world.fail(3)
    world.rig.install(fleet(tier("two", SIBLING)))
    assert len(world.rig.suppression) == 0


def test_reports_about_what_has_changed_count_nothing() -> None:
    """They are about another key, another name, another place."""
    world = vendors()
    old = [world.rig.chosen() for _ in range(3)]
    changed = provider("vendor", row("gpt", "m"), generation="2")
    world.rig.install(fleet(tier("one", changed)))
    world.wait(1)
    for choice in old:
        world.status(choice, 503)
    assert len(world.rig.suppression) == 0


def test_an_operator_can_lift_it() -> None:
    """By the name that people see, for the whole or for a part."""
    world = vendors()
    world.fail(2, 401)
    assert world.rig.suppression.lift("provider:default/vend") == 0
    assert world.rig.suppression.lift("provider:default/vendor") == 1
    assert world.rig.chosen().name == "provider:default/vendor"
    world.fail(3, 404)
    assert world.rig.suppression.lift("provider:default/vendor/gpt") == 1
    assert world.rig.told.edges[-1] == ("provider:default/vendor/gpt", "lifted")


def test_lifting_a_model_lifts_no_model_whose_name_begins_so() -> None:
    """Names of models have slashes; the whole member is lifted with all of them."""
    vendor = provider("vendor", row("org"), row("org/small"))
    world = Fleeting(ChooserRig(fleet(tier("t", vendor))))
    suppression = world.rig.suppression
    world.fail(3, 404, "org")
    world.fail(3, 404, "org/small")
    assert suppression.lift("provider:default/vendor/org") == 1
    assert suppression.lift("provider:default/vendor/org") == 0
    assert suppression.lift("provider:default") == 0
    world.fail(3, 404, "org")
    assert suppression.lift("provider:default/vendor") == 2
    workers = local_only("a:1", "b:1")
    workers.fail(6)
    assert workers.rig.suppression.lift("default/local") == 2


def test_no_more_are_remembered_than_there_is_room_for() -> None:
    """The oldest count goes."""
    rows = [row(f"m{number}") for number in range(30)]
    world = Fleeting(ChooserRig(fleet(tier("one", provider("vendor", *rows)))))
    world.rig.suppression._settings = type(world.rig.suppression._settings)(tracked_max=10)
    for number in range(30):
        world.fail(3, model=f"m{number}")
    assert len(world.rig.suppression) == 10
    assert world.rig.chosen(question("m0")).name == "provider:default/vendor"
    world.rig.refused(question("m29"))
