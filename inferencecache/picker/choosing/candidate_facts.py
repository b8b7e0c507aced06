"""What is known of the candidates of a Pick that is over, fact by fact.

Nothing of it changes later, and nothing of it keeps the fleet, which may be another one when
somebody reads it. What follows from the rest is worked out only then.
"""

from collections.abc import Mapping

import msgspec

from inferencecache.picker.choosing.meeting import meeting
from inferencecache.picker.fleet import CandidateCard
from inferencecache.picker.load import CandidateLoad, EngineSignal, Queue, queue_of
from inferencecache.picker.prefix import NO_MATCH, CandidateMatch
from inferencecache.picker.ttft import estimated_ttft_ms
from inferencecache.settings.picker_ttft import TtftSettings


class CandidateFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to know of several candidates.

    Attributes:
        cards: Who they are.
        loads: What each was given by this picker.
        matches: What each has of the prompt, and who says so; None where nobody has any of it.
        signals: What the engine of each says; None where no engine says anything.
        prompt_tokens: Length of the prompt.
        lengths: Its length at those, by name, where it is another one.
        settings: What each request ahead adds.
        providers_ms: When providers are estimated to answer, by name.
        predictions_ms: When each is predicted to; None where nobody wants to know.
    """

    cards: list[CandidateCard]
    loads: list[CandidateLoad]
    matches: list[CandidateMatch] | None
    signals: list[EngineSignal | None] | None
    prompt_tokens: int
    lengths: Mapping[str, int]
    settings: TtftSettings
    providers_ms: Mapping[str, float]
    predictions_ms: list[float | None] | None

    def matched(self) -> list[CandidateMatch]:
        """Return what each has of the prompt."""
        return self.matches or [NO_MATCH] * len(self.cards)

    def heard(self) -> list[EngineSignal | None]:
        """Return what the engine of each says."""
        return self.signals or [None] * len(self.cards)

    def queues(self) -> list[Queue]:
        """Return what each has to do; nobody knows what waits at a provider.

        Complexity: O(candidates).
        """
        return [
            Queue(load.requests, 0)
            if card.priors is None
            else queue_of(load, signal, card.priors.concurrency_max)
            for card, load, signal in zip(self.cards, self.loads, self.heard(), strict=True)
        ]

    def prompts_tokens(self) -> list[int]:
        """Return the length of the prompt at each, whose tokenizer may be its own.

        Complexity: O(candidates).
        """
        return [self.lengths.get(card.name, self.prompt_tokens) for card in self.cards]

    def estimates_ms(self) -> list[float]:
        """Return when each is estimated to give a first token, as the Pick itself would say.

        Complexity: O(candidates).
        """
        return [
            self.providers_ms[card.name]
            if card.priors is None
            else estimated_ttft_ms(
                meeting(
                    length,
                    load,
                    signal,
                    match,
                    card.priors,
                    card.weight,
                ),
                card.priors,
                self.settings,
            )
            for card, length, load, signal, match in zip(
                self.cards,
                self.prompts_tokens(),
                self.loads,
                self.heard(),
                self.matched(),
                strict=True,
            )
        ]
