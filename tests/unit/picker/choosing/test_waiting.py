"""What may have changed while a Pick waited for its producers."""

import asyncio

from fleets import (
    ChooserRig,
    fleet,
    name_of,
    provider,
    question,
    row,
    tier,
    tokens_of,
    worker_set,
)
from pipeline_rig import director, key, pipeline

from inferencecache.clock import NS_PER_S
from inferencecache.picker.choice import Choice, Outcome, Refusal
from inferencecache.picker.choosing import FailureKind
from inferencecache.picker.fleet import (
    Fleet,
    PickerPolicy,
    PolicyRule,
    RequestLimits,
    RuleAction,
)
from inferencecache.picker.pipeline import Produced

WORKERS = worker_set("local", row("m"), addresses=["a:1", "b:1"])
SIGNAL = key("signal")


class Slow:
    """A producer that waits until it is let go."""

    produces = (SIGNAL,)

    def __init__(self) -> None:
        self.waiting = 0
        self.go = asyncio.Event()

    async def produce(self, *_: object) -> Produced:
        """Wait."""
        self.waiting += 1
        await self.go.wait()
        return Produced()


class Waiting:
    """A chooser whose Picks wait.

    Args:
        in_force: Its fleet.
    """

    def __init__(self, in_force: Fleet) -> None:
        self.slow = Slow()
        self.rig = ChooserRig(in_force, director(pipeline(slow=self.slow)))
        self.picks: list[asyncio.Task[Choice | Refusal]] = []

    async def begin(self, count: int) -> None:
        """Let so many Picks wait."""
        for _ in range(count):
            steps = self.rig.chooser.choose(question(tenant="acme"))
            self.picks.append(asyncio.ensure_future(steps))
        await asyncio.sleep(0)
        assert self.slow.waiting == count

    async def end(self) -> list[Choice | Refusal]:
        """Let them all go, and return their answers."""
        self.slow.go.set()
        return await asyncio.gather(*self.picks)


async def test_a_pick_goes_on_with_the_fleet_it_began_with() -> None:
    """B50: whatever is loaded meanwhile is for those that come later."""
    waiting = Waiting(fleet(tier("t", WORKERS)))
    await waiting.begin(1)
    waiting.rig.install(fleet(tier("t", worker_set("other", row("m")))))
    (answer,) = await waiting.end()
    assert isinstance(answer, Choice)
    assert answer.name == "a:1"


async def test_those_that_waited_together_do_not_all_pass_a_limit() -> None:
    """Ten wait, two may be in flight: eight are refused, by name of the limit."""
    limit = PickerPolicy(
        key=name_of("p"),
        rules=(PolicyRule(action=RuleAction.LIMIT, limits=RequestLimits(in_flight_max=2)),),
    )
    waiting = Waiting(fleet(tier("t", WORKERS), policies=[limit]))
    await waiting.begin(10)
    answers = await waiting.end()
    refusals = [answer for answer in answers if isinstance(answer, Refusal)]
    assert len(refusals) == 8
    assert {answer.outcome for answer in refusals} == {Outcome.POLICY_REJECTED}
    assert {tokens_of(answer.reason)["limit"] for answer in refusals} == {"in_flight"}


async def test_what_was_suppressed_meanwhile_is_not_picked() -> None:
    """By the requests of others, a moment ago."""
    waiting = Waiting(fleet(tier("one", provider("v", row("m"))), tier("two", WORKERS)))
    await waiting.begin(2)
    candidate = waiting.rig.chooser.in_force.index.everything.matches("m")[0].rows[0].candidates[0]
    now_ns = waiting.rig.clock.monotonic_ns()
    for _ in range(2):
        waiting.rig.suppression.failed(
            candidate, FailureKind.UNAUTHORIZED, now_ns - NS_PER_S, now_ns
        )
    answers = await waiting.end()
    assert {answer.tier for answer in answers if isinstance(answer, Choice)} == {"two"}


async def test_where_nobody_is_left_the_answer_says_why() -> None:
    """The same as to those who ask now."""
    waiting = Waiting(fleet(tier("one", provider("v", row("m")))))
    await waiting.begin(1)
    candidate = waiting.rig.chooser.in_force.index.everything.matches("m")[0].rows[0].candidates[0]
    now_ns = waiting.rig.clock.monotonic_ns()
    for _ in range(2):
        waiting.rig.suppression.failed(
            candidate, FailureKind.UNAUTHORIZED, now_ns - NS_PER_S, now_ns
        )
    (answer,) = await waiting.end()
    assert isinstance(answer, Refusal)
    assert (answer.outcome, answer.reason) == (Outcome.NO_WORKERS, "candidates=suppressed")


async def test_load_is_looked_at_behind_the_wait() -> None:
    """Four that waited together are spread, though none was in flight when they came."""
    waiting = Waiting(fleet(tier("t", WORKERS)))
    await waiting.begin(4)
    answers = await waiting.end()
    names = [answer.name for answer in answers if isinstance(answer, Choice)]
    assert sorted(names) == ["a:1", "a:1", "b:1", "b:1"]
