"""Requests for a simulated fleet: from a trace, as agent sessions, or with nothing in common.

Everything is open loop: a request arrives when its workload says, whether or not earlier ones have
been answered, so that all strategies see the same arrivals.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby
from typing import Protocol

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.fingerprint import chain
from inferencecache.settings.simulate import ColdSettings, SessionSettings
from inferencecache.simulation.trace import TRACE_BLOCK_TOKENS, TraceRequest

_CONTENT_MAX = 2**32


class Draw(Protocol):
    """A source of random numbers, with a seed of its owner's."""

    def random(self) -> float:
        """Return a number from 0 up to, but not including, 1."""
        ...

    def expovariate(self, lambd: float, /) -> float:
        """Return an exponentially distributed number with mean 1 / *lambd*."""
        ...

    def lognormvariate(self, mu: float, sigma: float, /) -> float:
        """Return e to the power of a normally distributed number."""
        ...

    def randrange(self, stop: int, /) -> int:
        """Return a whole number from 0 up to, but not including, *stop*."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRequest:
    """One request for a fleet.

    Attributes:
        number: From 0, in the order of arrival.
        arrival_ns: When it arrives, from the start.
        prompt_tokens: Length of the prompt, >= 1.
        output_tokens: Length of the answer, >= 0.
        block_hashes: 8-byte key per full block of 512 tokens.
    """

    number: int
    arrival_ns: int
    prompt_tokens: int
    output_tokens: int
    block_hashes: Sequence[bytes]


def trace_workload(
    requests: Iterable[TraceRequest], speed: float, draw: Draw
) -> list[FleetRequest]:
    """Return the requests of a trace.

    Traces are recorded in coarse steps: what has one timestamp is spread at random over the time
    up to the next one.

    Args:
        requests: In order of arrival.
        speed: Time is pressed together by this factor, > 0.
        draw: Spreads.
    """
    found: list[FleetRequest] = []
    for arrival_ms, request in _spread(requests, draw):
        full_blocks = request.input_length // TRACE_BLOCK_TOKENS
        found.append(
            FleetRequest(
                number=len(found),
                arrival_ns=int(arrival_ms * NS_PER_MS / speed),
                prompt_tokens=request.input_length,
                output_tokens=request.output_length,
                block_hashes=chain(request.hash_ids[:full_blocks], 1),
            )
        )
    return found


def _spread(requests: Iterable[TraceRequest], draw: Draw) -> Iterator[tuple[float, TraceRequest]]:
    """Yield requests with their arrivals, in order."""
    groups = [list(group) for _, group in groupby(requests, lambda each: each.timestamp_ms)]
    starts_ms = [group[0].timestamp_ms for group in groups]
    for group, start_ms, end_ms in zip(groups, starts_ms, [*starts_ms[1:], None], strict=True):
        gap_ms = 0 if end_ms is None else end_ms - start_ms
        for share, request in zip(sorted(draw.random() for _ in group), group, strict=True):
            yield start_ms + share * gap_ms, request


def session_workload(
    requests: int, speed: float, settings: SessionSettings, draw: Draw
) -> list[FleetRequest]:
    """Return agent sessions: each turn's prompt is all that was said before, and some more.

    A session belongs to one of a few applications, which has a system prompt that all its sessions
    begin with. Between two turns lie the answer and a pause.

    Args:
        requests: How many, over all sessions.
        speed: Time is pressed together by this factor, > 0.
        settings: What sessions look like.
        draw: Makes them differ.
    """
    content = _Content(draw)
    systems = [
        content.blocks(settings.system_tokens // TRACE_BLOCK_TOKENS)
        for _ in range(settings.applications)
    ]
    rate_per_s = settings.requests_per_s / settings.turns_mean
    turns: list[tuple[float, int, _Turn]] = []
    found: list[FleetRequest] = []
    begin_s, begun = 0.0, 0
    while len(found) < requests:
        while not turns or begin_s <= turns[0][0]:
            system = systems[draw.randrange(len(systems))]
            heappush(turns, (begin_s, begun, _Turn(system, settings.system_tokens)))
            begin_s, begun = begin_s + draw.expovariate(rate_per_s), begun + 1
        at_s, session, turn = heappop(turns)
        said = 1 + int(draw.expovariate(1 / settings.turn_tokens_mean))
        answer = 1 + int(draw.expovariate(1 / settings.output_tokens_mean))
        turn = turn.longer(said, content)
        found.append(turn.request(len(found), at_s / speed, answer))
        is_over = draw.random() * settings.turns_mean < 1
        if not is_over and turn.tokens + answer < settings.session_tokens_max:
            pause_s = answer * settings.answer_token_ns / NS_PER_S
            pause_s += draw.expovariate(NS_PER_S / settings.pause_mean_ns)
            heappush(turns, (at_s + pause_s, session, turn.longer(answer, content)))
    return found


def cold_workload(
    requests: int, speed: float, settings: ColdSettings, draw: Draw
) -> list[FleetRequest]:
    """Return requests of which no two have anything in common.

    Args:
        requests: How many.
        speed: Time is pressed together by this factor, > 0.
        settings: How long they are, and how many come in a second.
        draw: Makes them differ.
    """
    content = _Content(draw)
    found: list[FleetRequest] = []
    at_s = 0.0
    for number in range(requests):
        at_s += draw.expovariate(settings.requests_per_s)
        length = settings.prompt_tokens_median * draw.lognormvariate(0.0, settings.prompt_spread)
        tokens = min(max(1, int(length)), settings.prompt_tokens_max)
        answer = 1 + int(draw.expovariate(1 / settings.output_tokens_mean))
        turn = _Turn((), 0).longer(tokens, content)
        found.append(turn.request(number, at_s / speed, answer))
    return found


class _Content:
    """Makes blocks that nobody else has."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def blocks(self, count: int) -> tuple[int, ...]:
        """Return the contents of *count* new blocks."""
        return tuple(self._draw.randrange(_CONTENT_MAX) for _ in range(count))


@dataclass(frozen=True, slots=True)
class _Turn:
    """A conversation so far: the contents of its full blocks, and its length."""

    content: tuple[int, ...]
    tokens: int

    def longer(self, tokens: int, content: _Content) -> "_Turn":
        """Return it with more said."""
        total = self.tokens + tokens
        missing = total // TRACE_BLOCK_TOKENS - len(self.content)
        return _Turn((*self.content, *content.blocks(missing)), total)

    def request(self, number: int, at_s: float, output_tokens: int) -> FleetRequest:
        """Return it as a prompt."""
        return FleetRequest(
            number=number,
            arrival_ns=int(at_s * NS_PER_S),
            prompt_tokens=self.tokens,
            output_tokens=output_tokens,
            block_hashes=chain(self.content, 1),
        )
