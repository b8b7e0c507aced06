"""Sessions stay where they are, as far as the load allows."""

from collections import Counter

import pytest
from pipeline_rig import made, question, request, worker, workers

from inferencecache.picker.choice import Question
from inferencecache.picker.pipeline import EndpointView, LoadSnapshot
from inferencecache.picker.request import Affinity

SCORER = made("session-affinity-scorer")
NAMES = [f"e{number}" for number in range(10)]


def home(asked: Question, endpoints: list[EndpointView], **parameters: object) -> str:
    """Return the endpoint that gets the point; empty if nobody does."""
    scorer = made("session-affinity-scorer", **parameters) if parameters else SCORER
    scores = scorer.score(request(asked), endpoints)
    assert sorted(scores)[:-1] == [0.0] * (len(endpoints) - 1)
    return endpoints[scores.index(1.0)].name if 1.0 in scores else ""


def session(name: str, tenant: str = "") -> Question:
    """Return a request of a session."""
    return question(affinity=Affinity(session_id=name), tenant=tenant)


def test_a_session_has_one_endpoint_whatever_their_order() -> None:
    """In another process as well: nothing is remembered."""
    first = home(session("s"), workers(*NAMES))
    assert first
    assert home(session("s"), workers(*reversed(NAMES))) == first


def test_sessions_are_spread() -> None:
    """Of 5,000 each of ten gets 500 plus or minus five standard deviations of 21."""
    views = workers(*NAMES)
    counts = Counter(home(session(f"s{number}"), views) for number in range(5_000))
    assert len(counts) == 10
    assert all(abs(count - 500) < 106 for count in counts.values())


def test_weights_are_shares() -> None:
    """3 to 1: 750 of 1,000 plus or minus five standard deviations of 14."""
    views = [worker("big", weight=3.0), worker("small", weight=1.0)]
    counts = Counter(home(session(f"s{number}"), views) for number in range(1_000))
    assert counts["big"] == pytest.approx(750, abs=70)


def test_only_the_sessions_of_an_endpoint_that_goes_move() -> None:
    """The others keep their caches."""
    views = workers(*NAMES)
    before = {f"s{number}": home(session(f"s{number}"), views) for number in range(500)}
    left = [view for view in views if view.name != "e3"]
    for name, where in before.items():
        now = home(session(name), left)
        assert where in {now, "e3"}
        assert now != "e3"


def test_a_full_endpoint_gives_its_session_to_the_next_one() -> None:
    """Of 13 requests and this one, each of ten may have ceil(1.25 x 14 / 10) = 2."""
    first = home(session("s"), workers(*NAMES))

    def loaded(count: int) -> list[EndpointView]:
        """Return the endpoints, the session's with *count* requests, the others with 1."""
        loads = {name: LoadSnapshot(requests_in_flight=1) for name in NAMES}
        loads[first] = LoadSnapshot(requests_in_flight=count)
        return [worker(name, load=load) for name, load in loads.items()]

    assert home(session("s"), loaded(1)) == first
    moved = home(session("s"), loaded(4))
    assert moved not in {first, ""}
    assert home(session("s"), loaded(4)) == moved
    assert home(session("s"), loaded(4), loadFactor=4.0) == first


def test_without_a_session_nobody_gets_a_point() -> None:
    """So that the other scorers decide."""
    assert home(question(), workers("a", "b")) == ""


def test_the_header_names_the_session_before_the_body() -> None:
    """Unless it is turned off."""
    both = question(headers={"x-session-id": "h"}, affinity=Affinity(session_id="b"))
    views = workers(*NAMES)
    assert home(both, views) == home(session("h"), views)
    assert home(both, views, headerName="") == home(session("b"), views)


@pytest.mark.parametrize(
    "key", ["session_id", "conversation", "prompt_cache_key", "user", "safety_identifier"]
)
def test_the_body_names_the_session_in_many_ways(key: str) -> None:
    """The first that has a value counts, in the order of the configuration."""
    views = workers(*NAMES)
    given = question(affinity=Affinity(**{key: "s"}))
    assert home(given, views) == home(session("s"), views)
    assert home(given, views, bodyKeys=["cache_salt"]) == ""
    both = question(affinity=Affinity(cache_salt="salt", **{key: "s"}))
    assert home(both, views, bodyKeys=["cache_salt", key]) == home(session("salt"), views)


def test_tenants_sessions_are_not_the_same() -> None:
    """Two tenants that use the same names do not meet on one endpoint."""
    views = workers(*NAMES)
    homes = {home(session("s", tenant=f"t{number}"), views) for number in range(20)}
    assert len(homes) > 1
