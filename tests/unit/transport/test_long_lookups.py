"""Long lookups take turns, and short ones do not wait for them."""

import asyncio
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

import pytest
from served_plane import NOW_NS, Recorder, lookup, new_plane, set_policy

from inferencecache.clock import NS_PER_MS, NS_PER_S, ManualClock
from inferencecache.service import CachePlane, RouteRequest, RouteSteps
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.lookup import LookupSettings
from inferencecache.transport import cache_handler
from inferencecache.transport.boundary import FailureLog
from inferencecache.transport.cache_handler import CacheHandler, HandlerParts
from inferencecache.transport.lookup_stages import LookupStages
from inferencecache.transport.read_lookup import read_long_request
from inferencecache.types import PROBE_TENANT_ID, ReasonCode
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

LONG = 100_000
"""Tokens of a lookup whose message is long, and takes seven slices."""

WITHIN_BYTES = 20_000
"""Tokens of a lookup whose message is not long, and takes two slices."""


@dataclass(kw_only=True)
class Call:
    """The context of a call.

    Attributes:
        remaining_s: Time its caller gives, None without a deadline.
    """

    remaining_s: float | None = None

    def time_remaining(self) -> float | None:
        """Return what is left."""
        return self.remaining_s


@dataclass(kw_only=True)
class Served:
    """A handler, and what its lookups do.

    Attributes:
        waiting_max: Lookups that may wait.
        worked: Model of each message read and of each slice, in order.
    """

    waiting_max: int = 64
    worked: list[str] = field(default_factory=list)
    recorder: Recorder = field(default_factory=Recorder)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_NS))
    plane: CachePlane = field(init=False)
    handler: CacheHandler = field(init=False)

    def __post_init__(self) -> None:
        self.plane = new_plane(
            clock=self.clock,
            recorder=self.recorder,
            lookup=LookupSettings(waiting_max=self.waiting_max),
        )
        self.handler = CacheHandler(
            HandlerParts(
                plane=self.plane,
                observer=self.recorder,
                failures=FailureLog(self.recorder, self.recorder, self.clock, NS_PER_S),
                settings=GrpcSettings(ingest_slice_entries=10_000),
                stages=LookupStages(self.clock, 1_000),
            )
        )

    def ask(
        self, model_id: str, tokens: int = LONG, remaining_s: float | None = None, **fields: str
    ) -> asyncio.Task[pb.LookupRouteResponse]:
        """Ask for a prompt of so many tokens."""
        data = lookup(model_id=model_id, token_ids=range(tokens), **fields).SerializeToString()
        call = Call(remaining_s=remaining_s)
        return asyncio.create_task(self.handler.lookup_route(data, call))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Turn the loop until *holds*."""
        async with asyncio.timeout(30):
            while not holds():
                await asyncio.sleep(0)

    def fail_opens(self) -> dict[str, int]:
        """Return what failed open, by cause."""
        return {cause.value: count for cause, count in self.plane.fail_opens.items() if count}


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Served]:
    """Return what makes a handler whose work is noted."""

    def make(**fields: int) -> Served:
        worked: list[str] = []
        steps_of = CachePlane.lookup_route_steps

        def steps(plane: CachePlane, request: RouteRequest, *args: int, **named: int) -> RouteSteps:
            inner = steps_of(plane, request, *args, **named)
            sent = None
            while True:
                try:
                    pause = inner.send(sent)
                except StopIteration as finished:
                    return finished.value
                worked.append(request.model_id)
                sent = yield pause

        def read(
            data: bytes, settings: LookupSettings
        ) -> Generator[None, None, RouteRequest | None]:
            request = yield from read_long_request(data, settings)
            if request is not None and len(request.token_ids) == LONG:
                worked.append(request.model_id)
            return request

        monkeypatch.setattr(CachePlane, "lookup_route_steps", steps)
        monkeypatch.setattr(cache_handler, "read_long_request", read)
        return Served(worked=worked, **fields)

    return make


async def test_one_is_read_and_worked_on_at_a_time_in_order(
    noted: Callable[..., Served],
) -> None:
    """So that a turn of the loop has one slice, or one message to read, of all of them."""
    served = noted()
    answers = await asyncio.gather(*(served.ask(f"m{number}") for number in range(5)))

    assert {answer.reason_code for answer in answers} == {"NO_HINT"}
    slices = served.worked.count("m0")
    assert slices > LONG // 16 // 1_024
    assert served.worked == [f"m{number}" for number in range(5) for _ in range(slices)]


async def test_a_message_of_usual_length_waits_after_its_first_slice(
    noted: Callable[..., Served],
) -> None:
    """Its other slices come when the long one has ended."""
    served = noted()
    long = served.ask("long")
    await served.until(lambda: len(served.worked) > 1)
    usual = served.ask("usual", WITHIN_BYTES)
    await asyncio.gather(long, usual)

    first = served.worked.index("usual")
    rest = served.worked[first + 1 :]
    assert "long" in rest
    assert "usual" not in rest[: rest.index("long")]
    assert set(served.worked[: first + 1]) == {"long", "usual"}


async def test_a_short_lookup_does_not_wait(noted: Callable[..., Served]) -> None:
    """It is answered while all the others are."""
    served = noted()
    others = [served.ask(f"m{number}") for number in range(5)]
    await served.until(lambda: len(served.worked) > 1)

    assert (await served.ask("short", 160)).reason_code == "NO_HINT"
    assert not any(other.done() for other in others)
    await asyncio.gather(*others)


async def test_one_more_than_may_wait_fails_open(noted: Callable[..., Served]) -> None:
    """It is neither read nor hashed, and it is counted under its model."""
    served = noted(waiting_max=2)
    asked = [served.ask(f"m{number}") for number in range(4)]
    answers = await asyncio.gather(*asked)

    assert {answer.reason_code for answer in answers} == {"NO_HINT"}
    assert served.worked.count("m3") == 0
    assert served.fail_opens() == {"too_many_waiting": 1}
    assert served.recorder.lookups == {
        (f"m{number}", ReasonCode.NO_HINT, False): 1 for number in range(4)
    }


@pytest.mark.parametrize("by_policy", [False, True], ids=["caller", "policy"])
@pytest.mark.parametrize("tokens", [LONG, WITHIN_BYTES], ids=["long message", "usual message"])
async def test_time_that_runs_out_while_waiting_is_a_timeout(
    noted: Callable[..., Served],
    tokens: int,
    by_policy: bool,  # noqa: FBT001 - a case
) -> None:
    """Whoever set it; the one before it goes on."""
    served = noted()
    if by_policy:
        set_policy(served.plane, lookup_timeout_ms=1)
    before = served.ask("before", tenant_id="other")
    await served.until(lambda: len(served.worked) > 1)
    late = served.ask("late", tokens, None if by_policy else 0.001)
    await served.until(lambda: served.handler.lookups_waiting == 1)
    served.clock.advance_ns(NS_PER_MS)

    assert await late == pb.LookupRouteResponse(reason_code="TIMEOUT", lookup_latency_us=1_000)
    assert served.recorder.lookups["late", ReasonCode.TIMEOUT, False] == 1
    assert (await before).reason_code == "NO_HINT"


async def test_the_reserved_tenant_is_told_nothing_and_counted_as_nothing(
    noted: Callable[..., Served],
) -> None:
    """Neither that too many wait nor that its time ran out."""
    served = noted(waiting_max=1)
    asked = [served.ask(f"m{number}") for number in range(2)]
    probe = await served.ask("probe", tenant_id=PROBE_TENANT_ID)

    assert probe == pb.LookupRouteResponse(reason_code="NO_HINT")
    assert served.fail_opens() == {}
    await asyncio.gather(*asked)


async def test_a_caller_that_goes_away_while_waiting_is_counted(
    noted: Callable[..., Served],
) -> None:
    """Once, as a timeout, without being read."""
    served = noted()
    before = served.ask("before")
    gone = served.ask("gone")
    await served.until(lambda: len(served.worked) > 1)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert (await before).reason_code == "NO_HINT"
    assert "gone" not in served.worked
    assert served.recorder.lookups["gone", ReasonCode.TIMEOUT, False] == 1


async def test_a_long_message_that_does_not_parse_is_counted(
    noted: Callable[..., Served],
) -> None:
    """In its turn, which it gives back."""
    served = noted()
    garbage = await served.handler.lookup_route(b"\xff" * 100_000, Call())

    assert garbage == pb.LookupRouteResponse(reason_code="NO_HINT")
    assert served.recorder.unparsable == {"LookupRoute": 1}
    assert served.recorder.lookups == {("", ReasonCode.NO_HINT, False): 1}
    assert (await served.ask("next")).reason_code == "NO_HINT"
