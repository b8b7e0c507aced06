"""Count one choice, and put it into words; from here on it has consequences."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from inferencecache.clock import Clock
from inferencecache.picker.choice import Choice, Question
from inferencecache.picker.choosing.aftermath import Aftermath, AftermathParts
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
from inferencecache.picker.prefix import PrefixFound, PrefixSource
from inferencecache.picker.request import Api

_KEYS: Final = frozenset(
    {
        *("tier", "rank", "explored", "avoided", "prefix", "matched", "target", "model"),
        *("context", "saturated", "pool_version", "panic", "degraded"),
    }
)
"""That a reason may have by itself; no note takes their place."""

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
    texts = (
        _about_tier(turn.tier.name, chosen.ranked.name),
        "explored=1" if chosen.ranked.explores else "",
        "avoided=1" if chosen.is_avoiding else "",
        _about_prefix(chosen),
        _about_target(candidate.model.name),
        "model=default" if chosen.scope.is_default else "",
        "context=exceeds" if found.exceeds else "",
        "saturated=1" if turn.is_full else "",
        "pool_version=skew" if chosen.scope.is_skewed else "",
        "panic=1" if found.panics else "",
        f"degraded={','.join(degraded)}" if degraded else "",
        "" if candidate.is_provider else _about_notes(prefix),
    )
    return Choice(
        destination=candidate.destination,
        target_model=candidate.model.name,
        reason=";".join(filter(None, texts)),
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
    situation = outlook.situation_of(candidate)
    expected_ms = outlook.expected_ms(candidate, situation)
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
        candidate,
        situation,
        outlook.prompt_tokens,
        question.request.is_stream,
        expected_ms,
    )
    trace = outlook.found.trace
    warmth = None if trace is None else trace.placed(candidate, expected_ms)
    request = RequestName(question.tenant, question.client_request_id)
    followers = Followers((share, learning, warmth, plugins))
    follower = Aftermath(parts.aftermath, candidate, request, limits, is_trying, now_ns, followers)
    return choice_of(chosen, question, follower)


@lru_cache(maxsize=1_024)
def _about_tier(tier: str, rank: str) -> str:
    """Return in which tier it was found, and how that was ranked."""
    return _pairs({"tier": token_text(tier), "rank": rank})


@lru_cache(maxsize=1_024)
def _about_target(model: str) -> str:
    """Return which model it is for."""
    return _pairs({"target": token_text(model)})


def _about_prefix(chosen: Chosen) -> str:
    """Return where the signal comes from, and what it says of the one that was chosen."""
    outlook, candidate = chosen.outlook, chosen.candidate
    source = PrefixSource.NONE if candidate.is_provider else outlook.found.source
    if source is PrefixSource.NONE:
        return f"prefix={source}"
    matched = outlook.match_of(candidate).matched_tokens
    return f"prefix={source};matched={matched}/{outlook.tokens_at(candidate)}"


def _about_notes(found: PrefixFound) -> str:
    """Return what the signal says besides; what a reason has already stays as it is."""
    if not found.note:
        return ""
    notes: dict[str, str] = {}
    for key, value in found.note.items():
        notes.setdefault(token_text(key), token_text(value))
    return _pairs({key: value for key, value in notes.items() if key not in _KEYS})


def _pairs(tokens: Mapping[str, str]) -> str:
    return ";".join([f"{key}={value}" for key, value in tokens.items() if value])
