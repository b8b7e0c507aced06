"""Another attempt of a request goes where it has not just failed, as long as somebody is left."""

from dataclasses import replace

import pytest
from fleets import ChooserRig, fleet, provider, question, row, tier, tokens_of, worker_set
from known_prefixes import KnownPrefixes
from pipeline_rig import director, pipeline
from reports import FINAL

from inferencecache.clock import NS_PER_S
from inferencecache.picker.choice import Choice, Question
from inferencecache.picker.choosing import RequestName
from inferencecache.picker.decisions import (
    AbortReport,
    Ending,
    FirstTokenReport,
)
from inferencecache.settings.picker_choice import PickerChoiceSettings

WORKERS = worker_set("local", row("m"), addresses=["a:1", "b:1"])
VENDOR = provider("vendor", row("m"))
SIBLING = provider("sibling", row("m"))
WARM_AT_A = {"a:1": 6_000}


def warm(*tiers: object) -> ChooserRig:
    """Return a chooser to which prompts are warm at a."""
    prefix = KnownPrefixes(WARM_AT_A, prompt_tokens=8_000)
    return ChooserRig(fleet(*(tiers or (tier("t", WORKERS),))), prefix=prefix)


def asked(request_id: str = "r1", tenant: str = "acme") -> Question:
    """Return an attempt of a request."""
    return question(tenant=tenant, request_id=request_id)


def begin(choice: Choice, status: int) -> None:
    """Let an attempt be answered with *status*."""
    assert choice.follower is not None
    choice.follower.first_token(FirstTokenReport(observed_ttft_ms=1, upstream_status=status))


def fail(choice: Choice, status: int = 0, abort: str = "REASON_UNSPECIFIED") -> None:
    """Let an attempt come to nothing, as a gateway reports it."""
    assert choice.follower is not None
    if status >= 0:
        begin(choice, status)
    choice.follower.ended(Ending.ABORTED, AbortReport(reason=abort, detail=""))


def finish(choice: Choice, status: int | None = 200, tokens: int = 0) -> None:
    """Let an attempt be answered to its end."""
    assert choice.follower is not None
    if status is not None:
        begin(choice, status)
    choice.follower.ended(Ending.FINISHED, replace(FINAL, completion_tokens=tokens))


def barriers_of(choice: Choice) -> dict[str, str]:
    """Return what keeps whom away."""
    assert choice.explanation is not None
    return {found.name: found.barrier for found in choice.explanation.candidates}


@pytest.mark.parametrize("status", [0, 500, 503, 599])
def test_a_second_attempt_avoids_the_warm_worker_that_has_failed(status: int) -> None:
    """And says so; for everybody else the worker is as good as before."""
    rig = warm()
    first = rig.chosen(asked())
    assert first.name == "a:1"
    assert "avoided" not in tokens_of(first.reason)
    fail(first, status)
    second = rig.chosen(asked())
    assert (second.name, tokens_of(second.reason)["avoided"]) == ("b:1", "1")
    assert not second.is_degraded
    assert barriers_of(second) == {"a:1": "failed_here", "b:1": "none"}
    for other in (asked("r2"), asked(tenant="another"), asked(""), question()):
        elsewhere = rig.chosen(other)
        assert elsewhere.name == "a:1"
        assert "avoided" not in elsewhere.reason


@pytest.mark.parametrize(
    ("status", "abort"),
    [
        (401, "BACKEND_UNAUTHORIZED"),
        (402, "REASON_UNSPECIFIED"),
        (403, "REASON_UNSPECIFIED"),
        (404, "REASON_UNSPECIFIED"),
        (500, "REASON_UNSPECIFIED"),
        (0, "REASON_UNSPECIFIED"),
        (-1, "BACKEND_UNRESOLVED"),
        (-1, "BACKEND_UNAUTHORIZED"),
    ],
)
def test_a_second_attempt_avoids_the_provider_that_has_failed(status: int, abort: str) -> None:
    """Though its tier comes first."""
    rig = warm(tier("one", VENDOR), tier("two", SIBLING))
    fail(rig.chosen(asked()), status, abort)
    second = rig.chosen(asked())
    assert (second.name, second.tier) == ("provider:default/sibling", "two")
    assert rig.chosen(asked("r2")).name == "provider:default/vendor"


@pytest.mark.parametrize("status", [200, 400, 401, 404, 422])
def test_what_is_not_the_destinations_fault_is_not_avoided(status: int) -> None:
    """The client's own mistakes, and answers that were given up."""
    rig = warm()
    fail(rig.chosen(asked()), status)
    assert rig.chosen(asked()).name == "a:1"
    assert len(rig.failed) == 0


def test_a_busy_worker_is_avoided_after_its_rest() -> None:
    """A rest is one second at first."""
    rig = warm()
    fail(rig.chosen(asked()), 429)
    rig.clock.advance_ns(2 * NS_PER_S)
    assert rig.chosen(asked()).name == "b:1"
    assert rig.chosen(asked("r2")).name == "a:1"


def test_every_attempt_goes_somewhere_else_and_then_anywhere() -> None:
    """With nobody left it is as if nothing was remembered."""
    rig = warm(tier("one", WORKERS), tier("two", VENDOR))
    names, reasons = [], []
    for _ in range(4):
        choice = rig.chosen(asked())
        names.append(choice.name)
        reasons.append(tokens_of(choice.reason).get("avoided", ""))
        fail(choice)
    assert names == ["a:1", "b:1", "provider:default/vendor", "a:1"]
    assert reasons == ["", "1", "1", ""]


def test_a_request_of_which_the_last_one_has_failed_is_not_refused() -> None:
    """There is nobody else."""
    rig = warm(tier("t", worker_set("only", row("m"), addresses=["a:1"])))
    fail(rig.chosen(asked()))
    again = rig.chosen(asked())
    assert (again.name, barriers_of(again)) == ("a:1", {"a:1": "none"})
    assert "avoided" not in again.reason


@pytest.mark.parametrize(("status", "tokens"), [(200, 0), (204, 3), (None, 3)])
def test_success_forgets(status: int | None, tokens: int) -> None:
    """A name that is used again may go where it is warm."""
    rig = warm()
    fail(rig.chosen(asked()))
    finish(rig.chosen(asked()), status, tokens)
    assert len(rig.failed) == 0
    assert rig.chosen(asked()).name == "a:1"


@pytest.mark.parametrize(("status", "tokens"), [(None, 0), (400, 3), (503, 3)])
def test_an_end_without_success_forgets_nothing(status: int | None, tokens: int) -> None:
    """A final report alone does not say that it went well."""
    rig = warm()
    fail(rig.chosen(asked()))
    finish(rig.chosen(asked()), status, tokens)
    assert rig.failed.of(RequestName("acme", "r1"), rig.clock.monotonic_ns()) >= {"a:1"}


@pytest.mark.parametrize("status", [200, 503])
def test_a_status_that_comes_behind_the_end_counts_all_the_same(status: int) -> None:
    """Reports may overtake each other."""
    rig = warm()
    fail(rig.chosen(asked()))
    second = rig.chosen(asked())
    finish(second, None)
    begin(second, status)
    failed = rig.failed.of(RequestName("acme", "r1"), rig.clock.monotonic_ns())
    assert set(failed) == (set() if status == 200 else {"a:1", "b:1"})


def test_time_forgets() -> None:
    """Thirty seconds unless a setting says otherwise."""
    rig = warm()
    fail(rig.chosen(asked()))
    rig.clock.advance_ns(30 * NS_PER_S - 1)
    assert rig.chosen(asked()).name == "b:1"
    rig.clock.advance_ns(1)
    assert rig.chosen(asked()).name == "a:1"


def test_a_setting_switches_it_off() -> None:
    """Then a second attempt goes where it is warm."""
    prefix = KnownPrefixes(WARM_AT_A, prompt_tokens=8_000)
    settings = PickerChoiceSettings(failures_kept_ns=0)
    rig = ChooserRig(fleet(tier("t", WORKERS)), settings=settings, prefix=prefix)
    fail(rig.chosen(asked()))
    assert rig.chosen(asked()).name == "a:1"


def test_suppression_counts_as_before() -> None:
    """Three failures of three requests; each second attempt has gone elsewhere."""
    rig = warm()
    for number in range(3):
        rig.clock.advance_ns(NS_PER_S)
        first = rig.chosen(asked(f"r{number}"))
        assert first.name == "a:1"
        assert rig.told.edges == []
        fail(first)
        finish(rig.chosen(asked(f"r{number}")))
    assert rig.told.edges == [("default/local/a:1", "failure")]
    assert barriers_of(rig.chosen(asked("r9"))) == {"a:1": "suppressed", "b:1": "none"}


def test_who_is_suppressed_is_no_other_destination() -> None:
    """Where it has failed once is better than where everybody fails."""
    rig = warm()
    rig.load("a:1", prefill_tokens=50_000)
    for _ in range(3):
        rig.clock.advance_ns(1)
        fail(rig.chosen(question()))
    assert rig.told.edges == [("default/local/b:1", "failure")]
    first = rig.chosen(asked())
    fail(first)
    second = rig.chosen(asked())
    assert (first.name, second.name) == ("a:1", "a:1")
    assert "panic" not in second.reason


class OnlyA:
    """A Filter that leaves a, if it is there."""

    def filter(self, _request: object, endpoints: list[object]) -> list[object]:
        """Leave a."""
        return [each for each in endpoints if each.name == "a:1"]


def test_whom_a_profile_leaves_out_is_no_other_destination() -> None:
    """Somebody else is left only if somebody else can be ranked."""
    plugins = director(pipeline(only=OnlyA()))
    rig = ChooserRig(fleet(tier("t", WORKERS, profile="")), plugins)
    fail(rig.chosen(asked()))
    again = rig.chosen(asked())
    assert (again.name, barriers_of(again)["b:1"]) == ("a:1", "filtered")
    assert "avoided" not in again.reason


def test_whose_window_is_too_small_is_no_other_destination() -> None:
    """Once somebody has counted."""
    small = worker_set("small", row("m", window=7_000), addresses=["b:1"])
    large = worker_set("large", row("m", window=9_000), addresses=["a:1"])
    rig = warm(tier("t", small, large))
    fail(rig.chosen(asked()))
    again = rig.chosen(asked())
    assert (again.name, barriers_of(again)) == ("a:1", {"a:1": "none", "b:1": "context"})


def test_a_caller_that_names_all_requests_alike_is_not_harmed() -> None:
    """Its requests avoid what has failed, all the same, until one is answered."""
    rig = warm()
    fail(rig.chosen(asked("constant")))
    others = [rig.chosen(asked("constant")) for _ in range(5)]
    assert {choice.name for choice in others} == {"b:1"}
    for choice in others:
        finish(choice)
    assert rig.chosen(asked("constant")).name == "a:1"


def test_a_fleet_that_changes_takes_its_names_along() -> None:
    """Who has gone is not missed."""
    rig = warm()
    fail(rig.chosen(asked()))
    rig.install(fleet(tier("t", worker_set("local", row("m"), addresses=["c:1"]))))
    choice = rig.chosen(asked())
    assert choice.name == "c:1"
    assert "avoided" not in choice.reason
