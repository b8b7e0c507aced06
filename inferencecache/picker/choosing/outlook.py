"""What each candidate of one Pick would meet, and when it would give a first token.

Everything is as of the moment at which it is asked for, so that of a hundred Picks that waited
together each sees what the one before has added.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from inferencecache.picker.fleet import Candidate, WorkerSet
from inferencecache.picker.load import (
    IDLE,
    EngineSignals,
    LoadTable,
    Queue,
    queue_of,
)
from inferencecache.picker.prefix import (
    NO_MATCH,
    NOTHING_FOUND,
    CandidateMatch,
    PrefixFound,
    PrefixSource,
)
from inferencecache.picker.ttft import Foresight, Situation

_tuple: Final = tuple.__new__
"""Makes a named tuple as its constructor does, but without a call of a Python function."""

Facts = tuple[list[int], list[int], list[int], list[int], list[PrefixSource], list[float]]
"""Of several candidates, fact by fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What all Picks of a server know.

    Attributes:
        loads: What each candidate was given.
        signals: What engines say of themselves.
        foresight: How long they take.
    """

    loads: LoadTable
    signals: EngineSignals
    foresight: Foresight

    def queue_of(self, candidate: Candidate, now_ns: int) -> Queue:
        """Return what *candidate* has to do; nobody knows what waits at a provider."""
        load = self.loads.of(candidate.name)
        member = candidate.member
        if not isinstance(member, WorkerSet):
            return Queue(load.requests, 0)
        signal = self.signals.of(candidate.name, now_ns)
        return queue_of(load, signal, member.priors.concurrency_max)


class Outlook:
    """The candidates of one Pick.

    Asked about a candidate for the first time, it looks, and then keeps what it saw; so nothing is
    to be asked before the last step that waits.

    Args:
        knowledge: What is known of them.
        found: Where the prompt is warm.
        prompt_tokens: Its length, counted or estimated.
        is_counted: Whether the length is for certain.
        spread: How many times what others have to do counts; 1 as it is.
        now_ns: Monotonic time.

    Attributes:
        found: As given.
        prompt_tokens: As given.
        is_counted: As given.
    """

    __slots__ = (
        "_estimates_ms",
        "_knowledge",
        "_loads",
        "_now_ns",
        "_situations",
        "_spread",
        "found",
        "is_counted",
        "prompt_tokens",
    )

    def __init__(  # noqa: PLR0913 - all that an outlook depends on
        self,
        knowledge: Knowledge,
        *,
        found: PrefixFound = NOTHING_FOUND,
        prompt_tokens: int = 0,
        is_counted: bool = False,
        spread: float = 1.0,
        now_ns: int = 0,
    ) -> None:
        self._knowledge = knowledge
        self._loads = knowledge.loads.loads
        self._spread = spread
        self._now_ns = now_ns
        self._situations: dict[str, Situation] = {}
        self._estimates_ms: dict[str, float] = {}
        self.found = found
        self.prompt_tokens = prompt_tokens
        self.is_counted = is_counted

    def facts_of(self, candidates: Sequence[Candidate]) -> Facts:
        """Return for people what there is to know of *candidates*.

        Returns:
            For each, requests that it has to do and the tokens that it has yet to compute for them,
            of this picker; how many wait, as far as known; how much of the prompt it has, and who
            says so; and the estimate in milliseconds.
        """
        names = [candidate.name for candidate in candidates]
        loads, matches = self._loads, self.found.matches
        has = [loads.get(name, IDLE) for name in names]
        warm = [matches.get(name, NO_MATCH) for name in names]
        times_ms = self._known_ms(names, candidates)
        situations = self._situations
        return (
            [load[0] for load in has],
            [load[1] for load in has],
            [
                self._knowledge.queue_of(candidate, self._now_ns).waiting
                if name in situations and situations[name][3]
                else 0
                for name, candidate in zip(names, candidates, strict=True)
            ],
            [match.matched_tokens for match in warm],
            [match.source for match in warm],
            times_ms,
        )

    def match_of(self, candidate: Candidate) -> CandidateMatch:
        """Return what *candidate* has of the prompt."""
        return self.found.matches.get(candidate.name, NO_MATCH)

    def situation_of(self, candidate: Candidate) -> Situation:
        """Return what the request would meet at *candidate*."""
        situation = self._situations.get(candidate.name)
        if situation is None:
            situation = self._situations[candidate.name] = self._seen(candidate)
        return situation

    def estimated_ms(self, candidate: Candidate) -> float:
        """Return when *candidate* is estimated to give a first token, in milliseconds."""
        estimate_ms = self._estimates_ms.get(candidate.name)
        if estimate_ms is None:
            estimate_ms = self._estimates_ms[candidate.name] = self._estimated_ms(
                candidate, self.situation_of(candidate)
            )
        return estimate_ms

    def predicted_ms(self, candidate: Candidate) -> float | None:
        """Return the same from reports; None where there are too few."""
        return self._knowledge.foresight.predicted_ms(
            candidate, self.situation_of(candidate), self.prompt_tokens, self._now_ns
        )

    def estimates_ms(self, candidates: Iterable[Candidate]) -> list[float]:
        """Return the estimates by which to rank: what others have to do counts as often as wanted.

        Workers of a set that have nothing to do and nothing of the prompt are all alike.

        Complexity: O(candidates).
        """
        loads, matches, knowledge = self._loads, self.found.matches, self._knowledge
        seen, estimate, spread = self._seen, knowledge.foresight.estimated_ms, self._spread
        hears_engines, prompt_tokens, now_ns = (
            len(knowledge.signals),
            self.prompt_tokens,
            self._now_ns,
        )
        situations, estimates_ms = self._situations, self._estimates_ms
        alike: dict[int, float] = {}
        found: list[float] = []
        for candidate in candidates:
            name, member = candidate.name, id(candidate.member)
            is_idle = not (hears_engines or name in loads or name in matches)
            estimate_ms = alike.get(member) if is_idle else None
            if estimate_ms is None:
                situation = situations[name] = seen(candidate)
                if spread != 1.0:
                    situation = self._spread_out(situation)
                estimate_ms = estimate(candidate, situation, prompt_tokens, now_ns)
                if spread == 1.0:
                    estimates_ms[name] = estimate_ms
                if is_idle and not candidate.is_provider:
                    alike[member] = estimate_ms
            found.append(estimate_ms)
        return found

    def predictions_ms(self, candidates: Iterable[Candidate]) -> list[float | None]:
        """Return the predictions by which to rank; None where there are too few reports.

        Complexity: O(candidates).
        """
        foresight, prompt_tokens, now_ns = (
            self._knowledge.foresight,
            self.prompt_tokens,
            self._now_ns,
        )
        return [
            foresight.predicted_ms(
                candidate, self._spread_out(self._seen(candidate)), prompt_tokens, now_ns
            )
            for candidate in candidates
        ]

    def expected_ms(self, candidate: Candidate) -> float:
        """Return the best that is known: the prediction, or else the estimate."""
        predicted_ms = self.predicted_ms(candidate)
        return self.estimated_ms(candidate) if predicted_ms is None else predicted_ms

    def _known_ms(self, names: Sequence[str], candidates: Sequence[Candidate]) -> list[float]:
        """Return the estimates for *candidates*, which have *names*, as they are."""
        if self._spread == 1.0 and not self._estimates_ms:
            return self.estimates_ms(candidates)
        known = self._estimates_ms
        return [
            known[name] if name in known else self.estimated_ms(candidate)
            for name, candidate in zip(names, candidates, strict=True)
        ]

    def _estimated_ms(self, candidate: Candidate, situation: Situation) -> float:
        return self._knowledge.foresight.estimated_ms(
            candidate, situation, self.prompt_tokens, self._now_ns
        )

    def _spread_out(self, situation: Situation) -> Situation:
        spread = self._spread
        if spread == 1.0:
            return situation
        own, ahead, requests, waiting = situation
        return Situation(own, ahead * spread, requests * spread, waiting * spread)

    def _seen(self, candidate: Candidate) -> Situation:
        name, endpoint, member = candidate.name, candidate.endpoint, candidate.member
        requests, ahead, _ = self._loads.get(name, IDLE)
        own, waiting = self.prompt_tokens, 0
        matched = self.found.matches.get(name)
        if matched is not None:
            own = max(0, own - matched.matched_tokens)
        if endpoint is None or not isinstance(member, WorkerSet):
            return _tuple(Situation, (own, ahead, requests, 0.0))
        if self._knowledge.signals.latest or requests > member.priors.concurrency_max:
            requests, waiting = self._knowledge.queue_of(candidate, self._now_ns)
        weight = endpoint.weight
        return _tuple(Situation, (own, ahead / weight, requests / weight, waiting / weight))
