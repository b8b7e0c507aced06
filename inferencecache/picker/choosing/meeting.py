"""What a request would meet at one candidate."""

from typing import Final

from inferencecache.picker.fleet import PriorsForEngine
from inferencecache.picker.load import CandidateLoad, EngineSignal, queue_of
from inferencecache.picker.prefix import CandidateMatch
from inferencecache.picker.ttft import Situation

_tuple: Final = tuple.__new__
"""Makes a named tuple as its constructor does, but without a call of a Python function."""


def meeting(  # noqa: PLR0913, PLR0917 - all that it depends on, and asked of each candidate
    prompt_tokens: int,
    load: CandidateLoad,
    signal: EngineSignal | None,
    match: CandidateMatch | None,
    priors: PriorsForEngine | None,
    weight: float,
) -> Situation:
    """Return what a request would meet.

    Two of four requests wait where the engine works on two, and of all that is ahead half counts:

    >>> priors = PriorsForEngine(prefill_tokens_per_s=8_000, base_ttft_ms=50, concurrency_max=2)
    >>> list(meeting(100, CandidateLoad(4, 300, 0), None, None, priors, 2.0))
    [100, 150.0, 2.0, 1.0]

    Args:
        prompt_tokens: Its length.
        load: What the candidate was given by this picker.
        signal: What its engine says; None if nothing, or nothing fresh.
        match: What it has of the prompt; None for nothing.
        priors: What is believed of its engine; None for a provider, of which nobody knows how many
            wait.
        weight: Its share of the load beside others.
    """
    requests, ahead, _ = load
    waiting = 0
    if priors is not None:
        if signal is not None:
            requests, waiting = queue_of(load, signal, priors.concurrency_max)
        elif requests > priors.concurrency_max:
            waiting = requests - priors.concurrency_max
    if match is not None:
        prompt_tokens = max(0, prompt_tokens - match.matched_tokens)
    return _tuple(Situation, (prompt_tokens, ahead / weight, requests / weight, waiting / weight))
