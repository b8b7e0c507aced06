"""Whatever producers need of each other, and whichever fail, only dependants are left out."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_rig import Noted, director, key, pipeline, question, task_runner, workers

from inferencecache.picker.pipeline import EndpointView, Produced, Request

FAULTS = ("none", "raise", "undeclared", "wrong_type", "strange_endpoint", "no_product")


@dataclass
class Node:
    """A producer of one number, with faults.

    Attributes:
        number: Its own; it needs those of lower ones.
        needs: Numbers of the producers it cannot work without.
        uses: Numbers of those it can.
        fault: What it does wrong.
        turns: How often it lets others go first.
    """

    number: int
    needs: frozenset[int]
    uses: frozenset[int]
    fault: str
    turns: int
    runs: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Under which it is configured."""
        return f"p{self.number}"

    @property
    def produces(self) -> tuple[object, ...]:
        """Its own key."""
        return (key(self.name),)

    @property
    def consumes(self) -> tuple[object, ...]:
        """The keys it needs."""
        return tuple(key(f"p{number}") for number in self.needs)

    @property
    def may_consume(self) -> tuple[object, ...]:
        """The keys it uses."""
        return tuple(key(f"p{number}") for number in self.uses)

    async def produce(self, request: Request, endpoints: Sequence[EndpointView]) -> object:
        """See that everything it needs is there, and say the key of the request."""
        self.runs.append(request.key)
        for needed in self.needs:
            assert request.attributes.get(key(f"p{needed}")) == request.key
        for _ in range(self.turns):
            await asyncio.sleep(0)
        return self.product(request, endpoints)

    def product(self, request: Request, endpoints: Sequence[EndpointView]) -> object:
        """Return what it says, right or wrong."""
        produced = Produced()
        value: object = request.key
        if self.fault == "raise":
            raise RuntimeError("told to")
        if self.fault == "no_product":
            return None
        if self.fault == "undeclared":
            produced.put(key("nobodys"), 1)
        if self.fault == "strange_endpoint":
            produced.put_for(workers("e")[0], key(self.name), 1)
        if self.fault == "wrong_type":
            value = str(value)
        produced.put(key(self.name), value)
        for endpoint in endpoints:
            produced.put_for(endpoint, key(self.name), request.key)
        return produced


@st.composite
def graphs(draw: st.DrawFn) -> list[Node]:
    """Draw producers without a circle, in any order."""
    count = draw(st.integers(1, 8))
    nodes = []
    for number in range(count):
        lower = st.frozensets(st.integers(0, number - 1)) if number else st.just(frozenset())
        nodes.append(
            Node(
                number=number,
                needs=draw(lower),
                uses=draw(lower),
                fault=draw(st.sampled_from(FAULTS) | st.just("none")),
                turns=draw(st.integers(0, 3)),
            )
        )
    return draw(st.permutations(nodes))


def left_out(nodes: list[Node]) -> set[int]:
    """Return those that fail, and those that need one of them, however far away."""
    by_number = {node.number: node for node in nodes}
    gone: set[int] = set()
    for number in sorted(by_number):
        node = by_number[number]
        if node.fault != "none" or node.needs & gone:
            gone.add(number)
    return gone


def skipped(nodes: list[Node]) -> set[int]:
    """Return those that are not even started."""
    gone = left_out(nodes)
    return {node.number for node in nodes if node.needs & gone}


@settings(max_examples=300, deadline=None)
@given(nodes=graphs(), is_task=st.booleans())
def test_exactly_the_dependants_of_failed_producers_are_left_out(
    nodes: list[Node],
    is_task: bool,  # noqa: FBT001 - drawn
) -> None:
    """Each other one runs once, behind all it needs; what it says is there, and nothing else."""
    noted = Noted()
    plugins = {node.name: node for node in nodes}
    built = director(pipeline(**plugins), noted, task_runner() if is_task else None)
    views = workers("a", "b")
    run = built.open(question())
    asyncio.run(run.produce(views))

    gone, unstarted = left_out(nodes), skipped(nodes)
    assert {node.number for node in nodes if node.runs} == {n.number for n in nodes} - unstarted
    assert all(len(node.runs) <= 1 for node in nodes)
    survivors = {node.name for node in nodes if node.number not in gone}
    assert set(run.request.attributes) == survivors
    assert all(set(view.attributes) == survivors for view in views)
    assert set(noted.produced_by) == survivors
    failed = {f"p{number}" for number in gone - unstarted}
    assert {token.partition(":")[0] for token in run.degraded} == failed
    assert len(run.degraded) == len(failed)


@settings(max_examples=100, deadline=None)
@given(nodes=graphs(), count=st.integers(2, 4))
def test_requests_see_nothing_of_each_other(nodes: list[Node], count: int) -> None:
    """However their producers take turns, every value is of the request that has it."""
    built = director(pipeline(**{node.name: node for node in nodes}), None, task_runner())
    runs = [built.open(question()) for _ in range(count)]
    views = [workers("a", "b") for _ in range(count)]

    async def all_at_once() -> None:
        await asyncio.gather(
            *(run.produce(own) for run, own in zip(runs, views, strict=True)),
        )

    asyncio.run(all_at_once())
    for run, own in zip(runs, views, strict=True):
        for name in run.request.attributes:
            assert run.request.attributes.get(key(name)) == run.request.key
        for view in own:
            assert {view.attributes.get(key(name)) for name in view.attributes} <= {run.request.key}
