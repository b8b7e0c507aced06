"""Count one choice, and put it into words; from here on it has consequences."""

from dataclasses import dataclass
from functools import lru_cache

import msgspec

from inferencecache.clock import Clock
from inferencecache.picker.choice import Choice, Question
from inferencecache.picker.choosing.aftermath import Aftermath, AftermathParts, Begun
from inferencecache.picker.choosing.failed_places import RequestName
from inferencecache.picker.choosing.learning import Followers, Learning, LearningObserver
from inferencecache.picker.choosing.outlook import Knowledge, Outlook
from inferencecache.picker.choosing.policy_gate import PolicyGate, Verdict
from inferencecache.picker.choosing.ranking import Ranked, TtftRanker
from inferencecache.picker.choosing.scope import Scope
from inferencecache.picker.choosing.suppression import Suppression
from inferencecache.picker.choosing.survey import Survey
from inferencecache.picker.choosing.tiers import TierTurn
from inferencecache.picker.decisions import DecisionFollower
from inferencecache.picker.explanation import Explanation
from inferencecache.picker.fleet import Candidate
from inferencecache.picker.pipeline.reasons import token_text
from inferencecache.picker.prefix import PrefixSource
from inferencecache.picker.request import Api

_name_text = lru_cache(maxsize=1_024)(token_text)
"""Of tiers and models there are few, and each is said again and again."""

_DECODE_TOKENS_MAX = 2**31 - 1
"""A body may ask for any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacingParts:
    """Whoever takes note of choices.

    Attributes:
        knowledge: Counts load, and learns how long it takes.
        ranker: Gives turns.
        suppression: Lets one request at a time try somebody who has failed.
        gate: Counts against limits.
        observer: Told what is learnt.
        aftermath: Who learns from failures.
        clock: Monotonic time.
    """

    knowledge: Knowledge
    ranker: TtftRanker
    suppression: Suppression
    gate: PolicyGate
    observer: LearningObserver
    aftermath: AftermathParts
    clock: Clock


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What a Pick has come to.

    Attributes:
        candidate: Where it goes.
        turn: The tier it was found in.
        ranked: How that was ranked.
        scope: Where it was looked.
        found: Who could have taken it.
        outlook: What it meets.
        is_avoiding: Whether somebody was left out because the request has just failed there.
        degraded: What was missing, as tokens.
        explanation: How it has come to it; None where nobody keeps that.
    """

    candidate: Candidate
    turn: TierTurn
    ranked: Ranked
    scope: Scope
    found: Survey
    outlook: Outlook
    is_avoiding: bool
    degraded: tuple[str, ...]
    explanation: Explanation | None


def choice_of(chosen: Chosen, question: Question, follower: DecisionFollower | None) -> Choice:
    """Return *chosen* as an answer to *question*.

    Args:
        chosen: What it has come to.
        question: What was asked.
        follower: Told how it goes on.
    """
    candidate, turn, found = chosen.candidate, chosen.turn, chosen.found
    prefix, degraded = chosen.outlook.found, list(chosen.degraded)
    if question.request.api is Api.UNKNOWN:
        degraded.insert(0, "shape")
    if not candidate.is_provider:  # nobody expects to know what a provider has in its cache
        degraded.extend(map(token_text, prefix.degraded))
    tokens = {
        "tier": _name_text(turn.tier.name),
        "rank": chosen.ranked.name,
        "explored": chosen.ranked.explores and "1",
        "avoided": chosen.is_avoiding and "1",
        **_prefix_tokens(chosen),
        "target": _name_text(candidate.model.name),
        "model": chosen.scope.is_default and "default",
        "context": found.exceeds and "exceeds",
        "saturated": turn.is_full and "1",
        "pool_version": chosen.scope.is_skewed and "skew",
        "panic": found.panics and "1",
        "degraded": ",".join(degraded),
    }
    if prefix.note and not candidate.is_provider:
        for key, value in prefix.note.items():
            tokens.setdefault(token_text(key), token_text(value))
    return Choice(
        destination=candidate.destination,
        target_model=candidate.model.name,
        reason=";".join([f"{key}={value}" for key, value in tokens.items() if value]),
        is_degraded=found.panics or bool(degraded),
        tier=turn.tier.name,
        candidate=candidate,
        follower=follower,
        explanation=chosen.explanation,
    )


def placed(
    chosen: Chosen,
    question: Question,
    verdict: Verdict,
    parts: PlacingParts,
    plugins: DecisionFollower | None,
) -> Choice:
    """Count *chosen* with everybody who wants to know, and return the answer to *question*.

    Args:
        chosen: What the Pick has come to.
        question: What was asked.
        verdict: The limits against which it counts.
        parts: Whoever takes note.
        plugins: Those that are told how it goes on.
    """
    candidate, outlook = chosen.candidate, chosen.outlook
    situation, expected_ms = outlook.situation_of(candidate), outlook.expected_ms(candidate)
    now_ns = parts.clock.monotonic_ns()
    limits = parts.gate.begin(verdict, now_ns)
    is_trying = parts.suppression.picked(candidate, now_ns)
    parts.ranker.chosen(candidate)
    share = parts.knowledge.loads.place(
        candidate.name,
        situation.uncached_tokens,
        min(question.request.output_tokens_max or 0, _DECODE_TOKENS_MAX),
    )
    learning = Learning(
        parts.knowledge.foresight,
        parts.observer,
        parts.clock,
        candidate=candidate,
        situation=situation,
        prompt_tokens=outlook.prompt_tokens,
        is_stream=question.request.is_stream,
        expected_ms=expected_ms,
    )
    trace = outlook.found.trace
    warmth = None if trace is None else trace.placed(candidate, expected_ms)
    followers = Followers(share, learning, warmth, plugins)
    request = RequestName(question.tenant, question.client_request_id)
    begun = Begun(candidate, request, limits, is_trying)
    follower = Aftermath(parts.aftermath, begun, followers)
    return choice_of(chosen, question, follower)


def _prefix_tokens(chosen: Chosen) -> dict[str, str]:
    """Return where the signal comes from, and what it says of the one that was chosen."""
    outlook, candidate = chosen.outlook, chosen.candidate
    source = PrefixSource.NONE if candidate.is_provider else outlook.found.source
    if source is PrefixSource.NONE:
        return {"prefix": source.value}
    matched = outlook.match_of(candidate).matched_tokens
    return {"prefix": source.value, "matched": f"{matched}/{outlook.prompt_tokens}"}
