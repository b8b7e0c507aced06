"""What each candidate of one Pick would meet, and when it would give a first token.

Everything is as of the moment at which it is asked for, so that of a hundred Picks that waited
together each sees what the one before has added.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

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


class Outlook(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The candidates of one Pick.

    It keeps nothing, and so is not to be asked before the last step that waits: from there on until
    the choice is counted it says the same again and again.

    Attributes:
        knowledge: What is known of them.
        found: Where the prompt is warm.
        prompt_tokens: Its length, counted or estimated; at some it may be another one.
        is_counted: Whether the length is for certain.
        spread: How many times what others have to do counts; 1 as it is.
        now_ns: Monotonic time.
    """

    knowledge: Knowledge
    found: PrefixFound = NOTHING_FOUND
    prompt_tokens: int = 0
    is_counted: bool = False
    spread: float = 1.0
    now_ns: int = 0

    def facts_of(self, candidates: Sequence[Candidate], *, predicts: bool) -> CandidateFacts:
        """Return for people what there is to know of *candidates*.

        Args:
            candidates: Of whom.
            predicts: Whether anybody wants to know what is predicted.

        Complexity: O(candidates).
        """
        cards = [candidate.card for candidate in candidates]
        knowledge, now_ns, matches = self.knowledge, self.now_ns, self.found.matches
        load_of, signal_of = knowledge.loads.loads.get, knowledge.signals.of
        hears_engines = bool(knowledge.signals.latest)
        providers_ms = {
            candidate.name: self.estimated_ms(candidate)
            for candidate in candidates
            if candidate.is_provider
        }
        return CandidateFacts(
            cards=cards,
            loads=[load_of(card[0], IDLE) for card in cards],
            matches=[matches.get(card[0], NO_MATCH) for card in cards] if matches else None,
            signals=[signal_of(card[0], now_ns) for card in cards] if hears_engines else None,
            prompt_tokens=self.prompt_tokens,
            lengths=self.found.lengths,
            settings=knowledge.foresight.settings,
            providers_ms=providers_ms,
            predictions_ms=[self.predicted_ms(each) for each in candidates] if predicts else None,
        )

    def match_of(self, candidate: Candidate) -> CandidateMatch:
        """Return what *candidate* has of the prompt."""
        return self.found.matches.get(candidate.name, NO_MATCH)

    def tokens_at(self, candidate: Candidate) -> int:
        """Return the length of the prompt at *candidate*, whose tokenizer may be its own."""
        return self.found.lengths.get(candidate.name, self.prompt_tokens)

    def situation_of(self, candidate: Candidate) -> Situation:
        """Return what the request would meet at *candidate*."""
        name = candidate.name
        return meeting(
            self.tokens_at(candidate),
            self.knowledge.loads.loads.get(name, IDLE),
            self.knowledge.signals.of(name, self.now_ns),
            self.found.matches.get(name),
            candidate.priors,
            candidate.weight,
        )

    def estimated_ms(self, candidate: Candidate) -> float:
        """Return when *candidate* is estimated to give a first token, in milliseconds."""
        return self.knowledge.foresight.estimated_ms(
            candidate, self.situation_of(candidate), self.prompt_tokens, self.now_ns
        )

    def predicted_ms(self, candidate: Candidate) -> float | None:
        """Return the same from reports; None where there are too few."""
        return self.knowledge.foresight.predicted_ms(
            candidate, self.situation_of(candidate), self.prompt_tokens, self.now_ns
        )

    def estimates_ms(self, candidates: Iterable[Candidate]) -> list[float]:
        """Return the estimates by which to rank: what others have to do counts as often as wanted.

        Workers of a set that have nothing to do and nothing of the prompt are all alike.

        Complexity: O(candidates).
        """
        knowledge, foresight = self.knowledge, self.knowledge.foresight
        load_of, match_of = knowledge.loads.loads.get, self.found.matches.get
        hears_engines, signal_of = bool(knowledge.signals.latest), knowledge.signals.of
        prompt_tokens, now_ns, spread = self.prompt_tokens, self.now_ns, self.spread
        settings, lengths = foresight.settings, self.found.lengths
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
            length = lengths.get(name, prompt_tokens) if lengths else prompt_tokens
            met = meeting(length, load or IDLE, signal, match, priors, candidate.weight)
            if spread != 1.0:
                met = self._spread_out(met)
            if priors is None:
                found.append(foresight.estimated_ms(candidate, met, prompt_tokens, now_ns))
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
            self.knowledge.foresight.predicted_ms,
            self.prompt_tokens,
            self.now_ns,
        )
        return [
            predicted_ms(
                candidate, self._spread_out(self.situation_of(candidate)), prompt_tokens, now_ns
            )
            for candidate in candidates
        ]

    def expected_ms(self, candidate: Candidate, situation: Situation) -> float:
        """Return the best that is known: the prediction, or else the estimate.

        Args:
            candidate: Of whom.
            situation: What the request would meet there.
        """
        foresight, met = self.knowledge.foresight, (situation, self.prompt_tokens, self.now_ns)
        predicted_ms = foresight.predicted_ms(candidate, *met)
        return foresight.estimated_ms(candidate, *met) if predicted_ms is None else predicted_ms

    def _spread_out(self, situation: Situation) -> Situation:
        spread = self.spread
        if spread == 1.0:
            return situation
        own, ahead, requests, waiting = situation
        return Situation(own, ahead * spread, requests * spread, waiting * spread)
