"""What happens in a demo, in lines: where requests went and why, who fails, who is back."""

from collections.abc import Iterator
from typing import Final

from inferencecache.app.demo_fleet import DemoFleet
from inferencecache.clock import NS_PER_MS, Clock
from inferencecache.picker.decisions import DecisionRecord
from inferencecache.picker.explanation import ExplainedCandidate

_SHOWN_MAX: Final = 100
_NO_BARRIER: Final = "none"


class DemoNews:
    """Tells what is new since it was asked last.

    Args:
        fleet: What runs.
        clock: Monotonic time.
    """

    def __init__(self, fleet: DemoFleet, clock: Clock) -> None:
        self._fleet = fleet
        self._clock = clock
        self._last: DecisionRecord | None = None
        self._suppressed: set[str] = set()

    def lines(self) -> Iterator[str]:
        """Yield what is new, the oldest first."""
        for record in self._new_records():
            yield self._routed(record)
            yield from self._candidates(record)
        yield from self._suppressions()
        yield from self._fleet.engine_control.take_news()
        for error in self._fleet.log.take():
            yield self._fleet.named(error)

    def _new_records(self) -> list[DecisionRecord]:
        fresh: list[DecisionRecord] = []
        for record in self._fleet.server.picker.records.find("", _SHOWN_MAX):
            if record is self._last:
                break
            fresh.append(record)
        self._last = fresh[0] if fresh else self._last
        return fresh[::-1]

    def _routed(self, record: DecisionRecord) -> str:
        destination = self._fleet.named(record.destination) or "nowhere"
        took_ms = record.duration_ns / NS_PER_MS
        reason = self._fleet.named(record.reason)
        return (
            f"request for {record.requested_model} -> {destination}  {record.outcome}  "
            f"{reason}  (chosen in {took_ms:.1f} ms)"
        )

    def _candidates(self, record: DecisionRecord) -> Iterator[str]:
        """Yield whoever could have been chosen, and what was expected of each."""
        explained = record.explanation
        if explained is None:
            return
        for one in explained.candidates:
            yield f"    {self._fleet.named(one.name)}: {_expected(one, explained.prompt_tokens)}"

    def _suppressions(self) -> Iterator[str]:
        now_s = self._fleet.suppressed_s(self._clock.monotonic_ns())
        for name in sorted(now_s.keys() - self._suppressed):
            yield f"{name} has failed again and again: left alone for {now_s[name]:.1f} s"
        for name in sorted(self._suppressed - now_s.keys()):
            yield f"{name} works again: picked as before"
        self._suppressed = set(now_s)


def _expected(one: ExplainedCandidate, prompt_tokens: int) -> str:
    """Return what was expected of a candidate, or why nothing was."""
    if not one.rank:
        why = one.barrier
        return "not needed, its tier comes later" if why == _NO_BARRIER else f"not asked, {why}"
    has = "has nothing of the prompt"
    if one.matched_tokens:
        has = f"has {one.matched_tokens:,} of {prompt_tokens:,} tokens ({one.source})"
    queued = f", computes {one.queued_tokens:,} others first" if one.queued_tokens else ""
    return f"first token in {one.estimated_ms:.0f} ms, {has}{queued}"
