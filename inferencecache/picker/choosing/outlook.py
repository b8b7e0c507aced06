"""What each candidate of one Pick would meet, and when it would give a first token.

Everything is as of the moment at which it is asked for, so that of a hundred Picks that waited
together each sees what the one before has added.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inferencecache.picker.choosing.candidate_facts import CandidateFacts
from inferencecache.picker.choosing.meeting import meeting
from inferencecache.picker.fleet import Candidate
from inferencecache.picker.load import (
    IDLE,
    EngineSignals,
    LoadTable,
    Queue,
    queue_of,
)
from inferencecache.picker.prefix import NO_MATCH, NOTHING_FOUND, CandidateMatch, PrefixFound
from inferencecache.picker.ttft import Foresight, Situation, estimated_ttft_ms


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
        load, priors = self.loads.of(candidate.name), candidate.priors
        if priors is None:
            return Queue(load.requests, 0)
        return queue_of(load, self.signals.of(candidate.name, now_ns), priors.concurrency_max)


class Outlook:
    """The candidates of one Pick.

    It keeps nothing, and so is not to be asked before the last step that waits: from there on until
    the choice is counted it says the same again and again.

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
        "_foresight",
        "_loads",
        "_now_ns",
        "_signals",
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
        self._loads = knowledge.loads.loads
        self._signals = knowledge.signals
        self._foresight = knowledge.foresight
        self._spread = spread
        self._now_ns = now_ns
        self.found = found
        self.prompt_tokens = prompt_tokens
        self.is_counted = is_counted

    def facts_of(self, candidates: Sequence[Candidate], *, predicts: bool) -> CandidateFacts:
        """Return for people what there is to know of *candidates*.

        Args:
            candidates: Of whom.
            predicts: Whether anybody wants to know what is predicted.

        Complexity: O(candidates).
        """
        cards = [candidate.card for candidate in candidates]
        load_of, matches, signals = self._loads.get, self.found.matches, self._signals
        providers_ms = {
            candidate.name: self.estimated_ms(candidate)
            for candidate in candidates
            if candidate.is_provider
        }
        return CandidateFacts(
            cards=cards,
            loads=[load_of(card[0], IDLE) for card in cards],
            matches=[matches.get(card[0], NO_MATCH) for card in cards] if matches else None,
            signals=[signals.of(card[0], self._now_ns) for card in cards] if signals else None,
            prompt_tokens=self.prompt_tokens,
            settings=self._foresight.settings,
            providers_ms=providers_ms,
            predictions_ms=[self.predicted_ms(each) for each in candidates] if predicts else None,
        )

    def match_of(self, candidate: Candidate) -> CandidateMatch:
        """Return what *candidate* has of the prompt."""
        return self.found.matches.get(candidate.name, NO_MATCH)

    def situation_of(self, candidate: Candidate) -> Situation:
        """Return what the request would meet at *candidate*."""
        name = candidate.name
        return meeting(
            self.prompt_tokens,
            self._loads.get(name, IDLE),
            self._signals.of(name, self._now_ns),
            self.found.matches.get(name),
            candidate.priors,
            candidate.weight,
        )

    def estimated_ms(self, candidate: Candidate) -> float:
        """Return when *candidate* is estimated to give a first token, in milliseconds."""
        return self._foresight.estimated_ms(
            candidate, self.situation_of(candidate), self.prompt_tokens, self._now_ns
        )

    def predicted_ms(self, candidate: Candidate) -> float | None:
        """Return the same from reports; None where there are too few."""
        return self._foresight.predicted_ms(
            candidate, self.situation_of(candidate), self.prompt_tokens, self._now_ns
        )

    def estimates_ms(self, candidates: Iterable[Candidate]) -> list[float]:
        """Return the estimates by which to rank: what others have to do counts as often as wanted.

        Workers of a set that have nothing to do and nothing of the prompt are all alike.

        Complexity: O(candidates).
        """
        load_of, match_of = self._loads.get, self.found.matches.get
        hears_engines, signal_of = bool(self._signals.latest), self._signals.of
        prompt_tokens, now_ns, spread = self.prompt_tokens, self._now_ns, self._spread
        settings = self._foresight.settings
        alike, alike_ms = None, 0.0
        found: list[float] = []
        for candidate in candidates:
            name, priors = candidate.name, candidate.priors
            load, match = load_of(name), match_of(name)
            is_idle = load is None and match is None and not hears_engines
            if is_idle and candidate.member is alike:
                found.append(alike_ms)
                continue
            signal = signal_of(name, now_ns) if hears_engines else None
            met = meeting(prompt_tokens, load or IDLE, signal, match, priors, candidate.weight)
            if spread != 1.0:
                met = self._spread_out(met)
            if priors is None:
                found.append(self._foresight.estimated_ms(candidate, met, prompt_tokens, now_ns))
                continue
            estimate_ms = estimated_ttft_ms(met, priors, settings)
            if is_idle:
                alike, alike_ms = candidate.member, estimate_ms
            found.append(estimate_ms)
        return found

    def predictions_ms(self, candidates: Iterable[Candidate]) -> list[float | None]:
        """Return the predictions by which to rank; None where there are too few reports.

        Complexity: O(candidates).
        """
        predicted_ms, prompt_tokens, now_ns = (
            self._foresight.predicted_ms,
            self.prompt_tokens,
            self._now_ns,
        )
        return [
            predicted_ms(
                candidate, self._spread_out(self.situation_of(candidate)), prompt_tokens, now_ns
            )
            for candidate in candidates
        ]

    def expected_ms(self, candidate: Candidate) -> float:
        """Return the best that is known: the prediction, or else the estimate."""
        predicted_ms = self.predicted_ms(candidate)
        return self.estimated_ms(candidate) if predicted_ms is None else predicted_ms

    def _spread_out(self, situation: Situation) -> Situation:
        spread = self._spread
        if spread == 1.0:
            return situation
        own, ahead, requests, waiting = situation
        return Situation(own, ahead * spread, requests * spread, waiting * spread)
