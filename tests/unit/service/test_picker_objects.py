"""States and conditions as people see them: what the files decide, and what traffic does."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from picker_texts import (
    BACKEND,
    MODELS,
    PROVIDER,
    joined,
    pool_of,
    provider,
    result_of,
    worker_set,
)
from resource_texts import load

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.picker.fleet import EMPTY_FLEET, Member, Qualifier
from inferencecache.service.picker_objects import PickerObjects
from inferencecache.settings.fleet import FleetSettings

START_NS = 1_000_000_000 * NS_PER_S
START = "2001-09-09T01:46:40Z"
LATER = "2001-09-09T01:47:40Z"


class Said:
    """Says of members what a test has it say.

    Attributes:
        of: By name of the member.
    """

    def __init__(self) -> None:
        self.of: dict[str, tuple[Qualifier, ...]] = {}

    def qualifiers_of(self, member: Member) -> Iterable[Qualifier]:
        """Return what the test says."""
        return self.of.get(member.key.name, ())


class Objects:
    """Objects of a picker, with a clock and somebody who qualifies them."""

    def __init__(self) -> None:
        self.clock = ManualClock(START_NS)
        self.said = Said()
        self.objects = PickerObjects(FleetSettings(), self.clock)
        self.objects.qualifiers = self.said

    def load(self, *texts: str) -> None:
        """Put *texts*, and nothing else, into force."""
        result_of(self.objects.apply_slices(load(joined(*texts))))

    def minute_later(self) -> None:
        """Let a minute pass."""
        self.clock.advance_ns(60 * NS_PER_S)

    def manifests(self) -> list[dict[str, Any]]:
        """Return everything that is shown."""
        items: list[dict[str, Any]] = result_of(self.objects.manifests_slices())["items"]
        return items

    def only(self) -> dict[str, Any]:
        """Return the one object that is shown."""
        (item,) = self.manifests()
        return item

    def state(self) -> str:
        """Return the state of the one object."""
        return str(self.only()["status"]["state"])

    def conditions(self) -> dict[str, tuple[str, str]]:
        """Return status and reason of each condition of the one object."""
        return {
            one["type"]: (one["status"], one["reason"])
            for one in self.only()["status"]["conditions"]
        }


@pytest.fixture
def objects() -> Objects:
    """Return objects of which there are none yet."""
    return Objects()


CLEAN = {
    "Accepted": ("True", "Accepted"),
    "ResolvedRefs": ("True", "ResolvedRefs"),
    "Ready": ("True", "Ready"),
}


def test_a_whole_provider(objects: Objects) -> None:
    """Accepted, and nothing else to be said."""
    objects.load(provider())
    assert objects.state() == "Accepted"
    assert objects.conditions() == CLEAN


@pytest.mark.parametrize(
    ("qualifiers", "state"),
    [
        ((Qualifier.BACKEND_UNRESOLVED,), "Accepted,BackendUnresolved"),
        ((Qualifier.BACKEND_UNAUTHORIZED,), "Accepted,BackendUnauthorized"),
        ((Qualifier.SUPPRESSED,), "Accepted,Suppressed"),
        (
            (Qualifier.SUPPRESSED, Qualifier.BACKEND_UNAUTHORIZED),
            "Accepted,BackendUnauthorized,Suppressed",
        ),
        (
            (Qualifier.SUPPRESSED, Qualifier.BACKEND_UNAUTHORIZED, Qualifier.BACKEND_UNRESOLVED),
            "Accepted,BackendUnresolved,BackendUnauthorized,Suppressed",
        ),
    ],
)
def test_qualifiers_follow_the_first_word(
    objects: Objects, qualifiers: tuple[Qualifier, ...], state: str
) -> None:
    """In one order, whatever order they come in."""
    objects.load(provider())
    objects.said.of["p"] = qualifiers
    assert objects.state() == state


@pytest.mark.parametrize(
    ("qualifiers", "state"),
    [
        ((Qualifier.INDEX_COLD,), "Accepted,IndexCold"),
        ((Qualifier.TOKENIZER_MISSING,), "Accepted,TokenizerMissing"),
        ((Qualifier.SUPPRESSED, Qualifier.INDEX_COLD), "Accepted,IndexCold,Suppressed"),
    ],
)
def test_qualifiers_of_a_worker_set(
    objects: Objects, qualifiers: tuple[Qualifier, ...], state: str
) -> None:
    """It is picked all the same."""
    objects.load(worker_set())
    objects.said.of["w"] = qualifiers
    assert objects.state() == state
    assert objects.conditions() == {"Accepted": CLEAN["Accepted"], "Ready": CLEAN["Ready"]}


class TestDiagnoses:
    """What people see where a provider is not picked."""

    def test_another_api(self, objects: Objects) -> None:
        """It is parsed, and then refused."""
        objects.load(provider(f"{{{BACKEND}, api: Anthropic, {MODELS}}}"))
        assert objects.state() == "UnsupportedApiFormat"
        conditions = objects.conditions()
        assert conditions["Accepted"] == ("False", "UnsupportedApiFormat")
        assert conditions["Ready"] == ("False", "UnsupportedApiFormat")
        assert objects.objects.fleet.everything.tiers == ()

    def test_incomplete(self, objects: Objects) -> None:
        """The condition says what lacks."""
        objects.load(provider("{}"))
        assert objects.state() == "Incomplete"
        accepted = objects.only()["status"]["conditions"][0]
        assert accepted["message"] == "there is no spec.backendRef.name"
        assert objects.conditions()["ResolvedRefs"] == ("Unknown", "Incomplete")

    def test_no_grant(self, objects: Objects) -> None:
        """The reference is not resolved, whatever it leads to."""
        ref = "backendRef: {name: b, namespace: other}"
        objects.load(provider(f"{{{ref}, api: OpenAI, {MODELS}}}"))
        assert objects.state() == "CrossNamespaceNotGranted"
        assert objects.conditions()["ResolvedRefs"] == ("False", "RefNotPermitted")

    def test_a_reference_to_nothing(self, objects: Objects) -> None:
        """Only callers can tell, by an Abort."""
        objects.load(provider())
        objects.said.of["p"] = (Qualifier.BACKEND_UNRESOLVED,)
        assert objects.conditions() == {
            "Accepted": ("True", "Accepted"),
            "ResolvedRefs": ("False", "BackendUnresolved"),
            "Ready": ("False", "BackendUnresolved"),
        }

    def test_a_wrong_key(self, objects: Objects) -> None:
        """The reference is right, but nothing can go there."""
        objects.load(provider())
        objects.said.of["p"] = (Qualifier.BACKEND_UNAUTHORIZED,)
        assert objects.conditions() == {
            "Accepted": ("True", "Accepted"),
            "ResolvedRefs": ("True", "ResolvedRefs"),
            "Ready": ("False", "BackendUnauthorized"),
        }

    def test_suppressed_with_clean_conditions(self, objects: Objects) -> None:
        """Never picked, and only the state says why."""
        objects.load(provider())
        objects.said.of["p"] = (Qualifier.SUPPRESSED,)
        assert objects.state() == "Accepted,Suppressed"
        assert objects.conditions() == CLEAN

    def test_an_ambiguous_name(self, objects: Objects) -> None:
        """The worker set is picked, the provider is not."""
        objects.load(provider(name="x"), worker_set(name="x"))
        remote, local = objects.manifests()
        assert remote["status"]["state"] == "AmbiguousName"
        assert local["status"]["state"] == "Accepted"
        assert [tier.name for tier in objects.objects.fleet.everything.tiers] == ["worker-sets"]

    def test_what_is_not_accepted_has_no_qualifiers(self, objects: Objects) -> None:
        """It is not picked, so nothing happens to it."""
        objects.load(provider("{}"))
        objects.said.of["p"] = (Qualifier.SUPPRESSED,)
        assert objects.state() == "Incomplete"


def test_a_pool(objects: Objects) -> None:
    """It counts the members that are accepted, and says what lacks."""
    objects.load(provider(), pool_of("InferenceProvider/p", "InferenceWorkerSet/w"))
    status = objects.manifests()[1]["status"]
    assert (status["state"], status["members"], status["tiers"]) == ("MembersMissing", 1, 1)
    found = {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}
    assert found == {
        "Accepted": ("True", "Accepted"),
        "ResolvedRefs": ("False", "NotFound"),
        "Ready": ("True", "Ready"),
    }


TIERED = """
apiVersion: inferencecache.io/v1alpha1
kind: InferencePool
metadata: {name: tiered}
spec:
  tiers:
    - {name: first, members: [{kind: InferenceProvider, name: p}]}
    - name: second
      rankBy: Profile
      profile: cheapest
      members: [{kind: InferenceProvider, name: q}]
"""


def test_a_pool_whose_profile_no_plugins_have(objects: Objects) -> None:
    """It says so as soon as that is known, and is whole again with the profile; it stays ready."""
    objects.load(provider(), provider(name="q"), TIERED)
    assert objects.manifests()[2]["status"]["state"] == "Accepted"

    objects.minute_later()
    profiles = ["default"]
    objects.objects.profiles = lambda: profiles
    status = objects.manifests()[2]["status"]
    assert status["state"] == "ProfileMissing"
    refs = next(one for one in status["conditions"] if one["type"] == "ResolvedRefs")
    assert (refs["status"], refs["reason"]) == ("False", "ProfileMissing")
    assert refs["lastTransitionTime"] == LATER
    assert refs["message"] == (
        "tier second is ranked by the profile cheapest, which the configuration of plugins does "
        "not have (default); estimated times rank it instead"
    )
    ready = next(one for one in status["conditions"] if one["type"] == "Ready")
    assert ready["status"] == "True"

    profiles.append("cheapest")
    assert objects.manifests()[2]["status"]["state"] == "Accepted"


def test_a_missing_member_comes_before_a_missing_profile(objects: Objects) -> None:
    """One state at a time, what the files say first."""
    objects.objects.profiles = tuple
    objects.load(TIERED)
    status = objects.manifests()[0]["status"]
    assert status["state"] == "MembersMissing"


def test_a_pool_with_nobody(objects: Objects) -> None:
    """It is there, and nothing can be picked from it."""
    objects.load(pool_of("InferenceProvider/p"))
    assert objects.conditions()["Ready"] == ("False", "NoMembers")


def test_an_empty_pool(objects: Objects) -> None:
    """It is not accepted."""
    objects.load(pool_of().replace("[}]", "[]"))
    assert objects.state() == "Incomplete"
    assert objects.conditions()["Accepted"] == ("False", "Incomplete")


def test_a_condition_keeps_its_time_until_it_changes(objects: Objects) -> None:
    """Since when something is wrong is what people want to know."""
    objects.load(provider())
    objects.minute_later()
    objects.said.of["p"] = (Qualifier.BACKEND_UNAUTHORIZED,)
    changed = {
        one["type"]: one["lastTransitionTime"] for one in objects.only()["status"]["conditions"]
    }
    assert changed == {"Accepted": START, "ResolvedRefs": START, "Ready": LATER}
    objects.minute_later()
    again = objects.only()["status"]["conditions"][2]
    assert again["lastTransitionTime"] == LATER


def test_a_reload_keeps_ages_and_a_new_object_begins_anew(objects: Objects) -> None:
    """An object is as old as its first load, unless it says how old it is."""
    dated = "name: q, creationTimestamp: '2000-01-01T00:00:00Z',"
    objects.load(provider())
    objects.minute_later()
    objects.load(
        provider(PROVIDER.replace("[qwen]", "[q]")),
        provider(name="q").replace("name: q,", dated),
        provider(name="r"),
    )
    created = {
        one["metadata"]["name"]: one["metadata"]["creationTimestamp"] for one in objects.manifests()
    }
    assert created == {"p": START, "q": "2000-01-01T00:00:00Z", "r": LATER}
    objects.load()
    objects.load(provider())
    assert objects.only()["metadata"]["creationTimestamp"] == LATER


def test_where_nobody_can_tell_there_is_no_age() -> None:
    """A directory alone does not say when its objects were made."""
    objects = PickerObjects(FleetSettings(), ManualClock(START_NS), ages=False)
    result_of(objects.apply_slices(load(joined(provider()))))
    (item,) = result_of(objects.manifests_slices())["items"]
    assert "creationTimestamp" not in item["metadata"]


def test_a_manifest_is_complete(objects: Objects) -> None:
    """Defaults are filled in, and what was left out is left out."""
    objects.load(provider())
    assert objects.only()["spec"] == {
        "backendRef": {
            "group": "gateway.linkerd.io",
            "kind": "GatewayBackend",
            "name": "databricks",
        },
        "api": "OpenAI",
        "models": [{"name": "qwen-32b", "aliases": ["qwen"]}],
    }


def test_what_is_shown_can_be_loaded(objects: Objects) -> None:
    """What a server prints is a file for the next one."""
    objects.load(
        provider(),
        worker_set(),
        pool_of("InferenceProvider/p", "InferenceWorkerSet/w"),
    )
    before = objects.manifests()
    state = load({"all.json": json.dumps(result_of(objects.objects.manifests_slices()))})
    assert not state.errors
    result_of(objects.objects.apply_slices(state))
    assert objects.manifests() == before


def test_a_load_that_is_cut_off_changes_nothing(objects: Objects) -> None:
    """The last slice makes the change."""
    objects.load(provider())
    before = objects.objects.fleet
    steps = objects.objects.apply_slices(load(joined(provider(name="q"))))
    next(steps)
    steps.close()
    assert objects.objects.fleet is before
    assert objects.only()["metadata"]["name"] == "p"


def test_nothing_is_there_before_the_first_load() -> None:
    """An empty list, not an error."""
    objects = PickerObjects(FleetSettings(), ManualClock(START_NS))
    assert objects.fleet is EMPTY_FLEET
    assert result_of(objects.manifests_slices()) == {
        "apiVersion": "v1",
        "kind": "List",
        "items": [],
    }
