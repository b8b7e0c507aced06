"""DEFERRABLE requests wait for a calmer moment, in turn by tenant, and not for ever."""

import asyncio

from fleets import ChooserRig, fleet, question, row, tier, worker_set
from pipeline_rig import director, key, pipeline

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.picker.choice import Choice, Outcome, QosClass, Refusal
from inferencecache.picker.decisions import Ending
from inferencecache.picker.fleet import PickerPolicy, PolicyRule, RuleAction
from inferencecache.picker.pipeline import Director, Produced
from inferencecache.settings.picker_choice import PickerChoiceSettings
from inferencecache.transport.picker_waiting import DeferredRequests

TEN = worker_set("ten", row("m"), concurrency=10)
OTHER = worker_set("other", row("n"), concurrency=10)
SHED = (Outcome.POLICY_REJECTED, "shed=deferrable")


class Deferring:
    """A chooser with a waiting room, whose worker is busy."""

    def __init__(
        self, queue_max: int = 100, wait_ns: int = 60 * NS_PER_S, plugins: Director | None = None
    ) -> None:
        settings = PickerChoiceSettings(deferrable_wait_ns=wait_ns)
        self.rig = ChooserRig(fleet(tier("t", TEN, OTHER)), plugins, settings)
        self.room = DeferredRequests(queue_max, self.rig.clock)
        self.rig.let_wait(self.room)
        self.busy = self.rig.load("ten:1", 9)
        self.let_in: list[str] = []

    def ask(
        self, tenant: str = "", model: str = "m", deadline_ns: int | None = None
    ) -> "asyncio.Task[Choice | Refusal]":
        """Let a request that can wait be picked for."""
        asked = question(model, tenant=tenant, qos=QosClass.DEFERRABLE, deadline_ns=deadline_ns)

        async def pick() -> Choice | Refusal:
            answer = await self.rig.chooser.choose(asked)
            self.let_in.append(tenant)
            return answer

        return asyncio.create_task(pick())

    async def free(self, count: int = 1) -> None:
        """Let requests end, and the room look."""
        for _ in range(count):
            self.busy.pop().ended(Ending.ABORTED, None)
        self.room.look()
        await settled()


async def settled() -> None:
    """Let everybody do what they can without waiting."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_at_the_limit_nobody_waits_and_above_it_somebody_does() -> None:
    """Eight of ten is calm; nine is not."""
    found = Deferring()
    waiting = found.ask()
    await settled()
    assert len(found.room) == 1
    await found.free()
    assert isinstance(await waiting, Choice)
    assert len(found.room) == 0


async def test_other_classes_and_other_models_do_not_wait() -> None:
    """Only what is deferrable waits, and only for its own workers."""
    found = Deferring()
    waiting = found.ask()
    await settled()
    assert isinstance(found.rig.chosen(question()), Choice)
    assert isinstance(found.rig.chosen(question(qos=QosClass.BATCH)), Choice)
    assert isinstance(await found.ask(model="n"), Choice)
    waiting.cancel()
    await settled()
    assert len(found.room) == 0


async def test_one_is_let_in_at_a_time_and_each_adds_its_load() -> None:
    """One place below the limit takes one, not all that wait."""
    found = Deferring()
    waiting = [found.ask() for _ in range(5)]
    await settled()
    await found.free()
    assert [task.done() for task in waiting].count(True) == 1
    assert found.rig.knowledge.loads.of("ten:1").requests == 9
    await found.free(3)
    assert [task.done() for task in waiting].count(True) == 4
    for task in waiting:
        task.cancel()


class Slow:
    """A producer that waits until it is let go."""

    produces = (key("signal"),)

    def __init__(self) -> None:
        self.asked = 0
        self.go = asyncio.Event()

    async def produce(self, *_: object) -> Produced:
        """Wait."""
        self.asked += 1
        await self.go.wait()
        return Produced()


async def test_those_that_are_not_placed_yet_count() -> None:
    """Five of ten are busy, so four more find it calm, however long it takes to place them."""
    slow = Slow()
    found = Deferring(plugins=director(pipeline(slow=slow)))
    for _ in range(4):
        found.busy.pop().ended(Ending.ABORTED, None)
    tasks = [found.ask() for _ in range(10)]
    await settled()
    assert (slow.asked, len(found.room)) == (4, 6)
    tasks.pop(0).cancel()
    await settled()
    assert (slow.asked, len(found.room)) == (5, 5)
    slow.go.set()
    await settled()
    assert found.rig.knowledge.loads.of("ten:1").requests == 9
    await found.free(2)
    assert (slow.asked, len(found.room)) == (7, 3)
    for task in tasks:
        task.cancel()


async def test_tenants_take_turns() -> None:
    """A tenant with many requests does not hold up one with few; within one, first come first."""
    found = Deferring()
    tasks = [found.ask(tenant) for tenant in ("a", "a", "a", "a", "b", "c", "b")]
    await settled()
    for _ in range(7):
        await found.free()
    await asyncio.gather(*tasks)
    assert found.let_in == ["a", "b", "c", "a", "b", "a", "a"]


async def test_who_waits_too_long_is_shed() -> None:
    """By the setting, or by the caller's own deadline, less a margin."""
    found = Deferring(wait_ns=20 * NS_PER_MS)
    answer = await found.ask()
    assert isinstance(answer, Refusal)
    assert (answer.outcome, answer.reason) == SHED
    patient = Deferring()
    now_ns = patient.rig.clock.monotonic_ns()
    hasty = await patient.ask(deadline_ns=now_ns + 70 * NS_PER_MS)
    too_late = await patient.ask(deadline_ns=now_ns + 50 * NS_PER_MS)
    assert [isinstance(each, Refusal) and each.reason for each in (hasty, too_late)] == [
        "shed=deferrable"
    ] * 2
    assert len(patient.room) == 0


async def test_there_is_room_for_so_many() -> None:
    """One more is shed at once; so is everybody where nobody may wait."""
    found = Deferring(queue_max=2)
    waiting = [found.ask() for _ in range(2)]
    await settled()
    answer = await found.ask()
    assert isinstance(answer, Refusal)
    assert (answer.outcome, answer.reason) == SHED
    for task in waiting:
        task.cancel()
    await settled()
    assert len(found.room) == 0


async def test_whoever_goes_away_holds_no_door() -> None:
    """A request that was let in, and whose caller gave up at that moment, lets the next one in."""
    found = Deferring()
    first, second = found.ask(), found.ask()
    await settled()
    found.busy.pop().ended(Ending.ABORTED, None)
    found.room.look()
    first.cancel()
    await settled()
    assert isinstance(await second, Choice)


async def test_a_server_that_ends_lets_nobody_wait() -> None:
    """Those that wait are shed at once, and so is whoever comes."""
    found = Deferring()
    waiting = [found.ask() for _ in range(3)]
    await settled()
    found.room.close()
    answers = [*await asyncio.gather(*waiting), await found.ask()]
    assert [answer.reason for answer in answers] == ["shed=deferrable"] * 4
    assert len(found.room) == 0
    await found.free(3)
    assert isinstance(await found.ask(), Choice)


async def test_a_denied_request_does_not_wait() -> None:
    """The rules have said no, however calm it may become."""
    found = Deferring()
    deny = PickerPolicy(
        key=TEN.key, rules=(PolicyRule(action=RuleAction.DENY, tenants=frozenset({"x"})),)
    )
    found.rig.install(fleet(tier("t", TEN), policies=[deny]))
    answer = await found.ask("x")
    assert isinstance(answer, Refusal)
    assert "rule=1" in answer.reason
    assert len(found.room) == 0


async def test_whoever_is_let_in_goes_by_the_fleet_of_that_moment() -> None:
    """A worker that has gone meanwhile is not picked."""
    found = Deferring()
    waiting = found.ask()
    await settled()
    found.rig.install(fleet(tier("t", worker_set("new", row("m")))))
    await found.free()
    answer = await waiting
    assert isinstance(answer, Choice)
    assert answer.name == "new:1"


async def test_workers_that_come_while_requests_wait_let_them_in() -> None:
    """Those that wait, and those that come behind them: nine of twenty are few."""
    found = Deferring()
    waiting = [found.ask() for _ in range(3)]
    await settled()
    assert len(found.room) == 3
    grown = worker_set("ten", row("m"), addresses=["ten:1", "ten:2"], concurrency=10)
    found.rig.install(fleet(tier("t", grown, OTHER)))
    newcomer = found.ask()
    await settled()
    assert len(found.room) == 0
    answers = [*await asyncio.gather(*waiting), await newcomer]
    assert [isinstance(answer, Choice) and answer.name for answer in answers] == ["ten:2"] * 4


async def test_workers_that_go_while_requests_wait_keep_them_waiting() -> None:
    """Eight of ten were calm, eight of eight are not."""
    found = Deferring()
    waiting = found.ask()
    await settled()
    shrunk = worker_set("ten", row("m"), concurrency=8)
    found.rig.install(fleet(tier("t", shrunk, OTHER)))
    await found.free()
    assert len(found.room) == 1
    await found.free(2)
    assert isinstance(await waiting, Choice)


async def test_a_model_that_goes_while_requests_wait_is_waited_for_no_longer() -> None:
    """They are told at once, and need not wait to be shed."""
    found = Deferring()
    waiting = found.ask()
    await settled()
    found.rig.install(fleet(tier("t", OTHER)))
    found.room.look()
    answer = await waiting
    assert isinstance(answer, Refusal)
    assert (answer.outcome, answer.reason) == (Outcome.NO_WORKERS, "model=unknown")


async def test_a_rehearsal_does_not_wait() -> None:
    """It says where the request would go once it goes."""
    found = Deferring()
    asked = question(qos=QosClass.DEFERRABLE)
    assert isinstance(found.rig.choose(asked, is_rehearsal=True), Choice)
