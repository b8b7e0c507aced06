"""At the cap of decisions: what is over makes room before what goes on."""

from random import Random

import pytest
from reports import FINAL, FIRST

from inferencecache.clock import ManualClock
from inferencecache.picker.choice import Choice, Question
from inferencecache.picker.destination import LocalDestination
from inferencecache.picker.request import parse_body
from inferencecache.service.pick import PickParts, PickPlane
from inferencecache.settings.picker import PickerParseSettings, PickerSettings

BODY = b'{"model": "m", "prompt": "p"}'


@pytest.fixture
def plane() -> PickPlane:
    """Return one that remembers three decisions."""
    new_id = Random(1).getrandbits
    settings = PickerSettings(decisions_max=3)
    return PickPlane(
        PickParts(settings=settings, clock=ManualClock(1_000), new_id=lambda: new_id(64))
    )


def picked(plane: PickPlane) -> int:
    """Return the response_id of a new decision, whose body was pulled."""
    upload = plane.open_upload(None)
    plane.append(upload, BODY)
    body = plane.begin(plane.complete(upload))
    question = Question(request=parse_body(BODY, PickerParseSettings()), content=body.content)
    choice = Choice(destination=LocalDestination(endpoint="a:1"), target_model="m")
    response_id = plane.settle(body, question, choice).response_id
    plane.bodies.release(plane.pull(response_id))
    return response_id


@pytest.mark.parametrize("says_first", [True, False])
def test_requests_that_go_on_stay_while_others_end(plane: PickPlane, says_first: bool) -> None:  # noqa: FBT001 - drawn
    """However many come and end after them."""
    long = picked(plane)
    for _ in range(12):
        short = picked(plane)
        if says_first:
            assert plane.first_token(short, FIRST)
        assert plane.final_token(short, FINAL)
    assert len(plane.decisions) == 3
    assert plane.decisions.in_flight.total == 1
    assert plane.final_token(long, FINAL)
    assert plane.decisions.in_flight.total == 0


def test_of_those_that_are_over_the_first_to_end_goes_first(plane: PickPlane) -> None:
    """The one that began first ended last: a late first token of it still counts."""
    one, two = picked(plane), picked(plane)
    for response_id in (two, one):
        assert plane.final_token(response_id, FINAL)
    picked(plane)
    picked(plane)
    assert plane.first_token(one, FIRST)
    assert not plane.first_token(two, FIRST)


def test_where_none_is_over_the_oldest_goes(plane: PickPlane) -> None:
    """It is no longer in flight then."""
    ids = [picked(plane) for _ in range(4)]
    assert [plane.final_token(response_id, FINAL) for response_id in ids] == [
        False,
        True,
        True,
        True,
    ]
