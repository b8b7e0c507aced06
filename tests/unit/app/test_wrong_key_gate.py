"""A provider with a wrong key under steady traffic, in virtual time."""

from dataclasses import replace
from itertools import pairwise

from fleets import ChooserRig, fleet, provider, question, row, tier, worker_set
from reports import FINAL

from inferencecache.clock import NS_PER_S
from inferencecache.picker.choice import Choice
from inferencecache.picker.decisions import Ending, FirstTokenReport

WRONG, RIGHT = 401, 200


def reported(choice: Choice, status: int) -> None:
    """Report what a gateway sees of an answer that comes at once."""
    follower = choice.follower
    assert follower is not None
    follower.first_token(FirstTokenReport(observed_ttft_ms=80, upstream_status=status))
    report = replace(FINAL, completion_tokens=5 if status == RIGHT else 0)
    follower.ended(Ending.FINISHED, report)


def test_a_wrong_key_costs_two_requests_and_a_right_one_brings_the_provider_back() -> None:
    """Ten requests a second; the key is wrong for 60 s, and nothing is restarted when it is right.

    Two requests find out, then one at a time tries after 5 s, 10 s, 20 s and so on.
    """
    rig = ChooserRig(
        fleet(
            tier("first", provider("keyed", row("m"))),
            tier("second", worker_set("own", row("m"))),
        )
    )
    to_provider: list[int] = []
    for number in range(1_600):
        choice = rig.chosen(question("m"))
        is_provider = choice.name.startswith("provider:")
        if is_provider:
            to_provider.append(number)
        reported(choice, WRONG if is_provider and number < 600 else RIGHT)
        rig.clock.advance_ns(NS_PER_S // 10)

    wrong = [number for number in to_provider if number < 600]
    assert wrong[:2] == [0, 1]
    gaps = [later - earlier for earlier, later in pairwise(wrong[1:])]
    assert gaps == [50, 100, 200]
    back = [number for number in to_provider if number >= 600]
    assert back[0] == wrong[-1] + 400
    assert back == list(range(back[0], 1_600))
