"""Which candidates of a request could take it, by tier, and what keeps the others away.

Rules of this file, each for when the one before leaves nobody: those that may be picked and into
whose context window the request fits; workers that are suppressed, since a try is better than
none; those with the largest window, unless the pool refuses. A provider that is suppressed is
never tried before its time: a backend that callers cannot reach will not answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from inferencecache.picker.choosing.fleet_index import RowCandidates, TierMatch
from inferencecache.picker.choosing.policy_gate import Verdict
from inferencecache.picker.choosing.suppression import Standing, Suppression
from inferencecache.picker.choosing.windows import ContextNeed
from inferencecache.picker.fleet import Candidate, ContextOverflow, ModelRow, Tier
from inferencecache.picker.request import Api


class Barrier(StrEnum):
    """What keeps a candidate from a request."""

    NONE = "none"
    DENIED = "denied"
    """A rule denies its model to the tenant."""
    API = "api"
    """It does not speak the request's API."""
    CONTEXT = "context"
    """The request does not fit into its context window."""
    RESTING = "resting"
    SUPPRESSED = "suppressed"
    PROBING = "probing"
    """It was suppressed, and another request is trying it."""
    FAILED_HERE = "failed_here"
    """The same request, by its caller's name for it, has just failed there."""
    FILTERED = "filtered"
    """A scheduling profile leaves it out."""
    UNPREDICTED = "unpredicted"
    """Its tier is ranked by predictions, and too little was reported of it lately."""


_BARRIERS = {
    Standing.CLEAR: Barrier.NONE,
    Standing.DUE: Barrier.NONE,
    Standing.RESTING: Barrier.RESTING,
    Standing.SUPPRESSED: Barrier.SUPPRESSED,
    Standing.PROBING: Barrier.PROBING,
}


_FINAL = frozenset({Barrier.DENIED, Barrier.API})
"""With these it does not matter what else there is."""

_PANIC = frozenset({Barrier.RESTING, Barrier.SUPPRESSED, Barrier.PROBING})

_REFUSALS = {
    Barrier.SUPPRESSED: "candidates=suppressed",
    Barrier.PROBING: "candidates=suppressed",
    Barrier.RESTING: "candidates=resting",
    Barrier.CONTEXT: "context=exceeds",
    Barrier.API: "api=unsupported",
    Barrier.DENIED: "candidates=denied",
}
"""What a caller is told where nobody is left; of several the first."""


class Surveyed(NamedTuple):
    """A candidate and what keeps it away.

    Attributes:
        candidate: Which one.
        barrier: Barrier.NONE if nothing does.
        fits: Whether the request fits into its window.
    """

    candidate: Candidate
    barrier: Barrier
    fits: bool


class TierField(NamedTuple):
    """The candidates of a tier that may be picked.

    Attributes:
        tier: Which tier.
        candidates: At least one.
    """

    tier: Tier
    candidates: tuple[Candidate, ...]


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """Who could take a request.

    Attributes:
        fields: By tier, in the pool's order; empty if nobody could.
        kept_away: The others, for those who want to know.
        panics: Whether suppressed workers are among them because there was nobody else.
        exceeds: Whether the request fits into no window, and goes to the largest.
        refusal: Why nobody could, as a ``key=value`` pair; empty if somebody can.
    """

    fields: tuple[TierField, ...]
    kept_away: tuple[Surveyed, ...] = ()
    panics: bool = False
    exceeds: bool = False
    refusal: str = ""


class SurveyQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What candidates are looked at for.

    Attributes:
        verdicts: What the rules say, by what would serve; empty where there are none.
        need: What the request asks of a context window.
        api: What it is meant for.
        overflow: What becomes of one that fits nowhere.
        now_ns: Monotonic time.
    """

    verdicts: Mapping[ModelRow, Verdict]
    need: ContextNeed
    api: Api
    overflow: ContextOverflow
    now_ns: int


def survey(
    matches: Iterable[TierMatch], question: SurveyQuestion, suppression: Suppression
) -> Survey:
    """Return who could take a request.

    Complexity: O(candidates).
    """
    free: list[TierField] = []
    away: list[tuple[Tier, Surveyed]] = []
    for tier, rows in matches:
        candidates: list[Candidate] = []
        for row in rows:
            found = _sort(row, question, suppression, candidates)
            away += [(tier, surveyed) for surveyed in found]
        if candidates:
            free.append(TierField(tier, tuple(candidates)))
    kept_away = tuple([surveyed for _, surveyed in away])
    if free:
        return Survey(fields=tuple(free), kept_away=kept_away)
    return _last_resort(away, kept_away, question.overflow)


def _sort(
    row: RowCandidates,
    question: SurveyQuestion,
    suppression: Suppression,
    free: list[Candidate],
) -> list[Surveyed]:
    """Add the candidates of *row* that may be picked to *free*, and return the others."""
    fits = question.need.fits(row.row.context_window)
    shared = _shared_barrier(row, question, fits=fits)
    if shared in _FINAL or (shared is Barrier.NONE and not len(suppression)):
        if shared is Barrier.NONE:
            free.extend(row.candidates)
            return []
        return [Surveyed(candidate, shared, fits) for candidate in row.candidates]
    kept_away: list[Surveyed] = []
    for candidate in row.candidates:
        own = _BARRIERS[suppression.standing(candidate, question.now_ns)]
        barrier = shared if own is Barrier.NONE else own
        if barrier is Barrier.NONE:
            free.append(candidate)
        else:
            kept_away.append(Surveyed(candidate, barrier, fits))
    return kept_away


def _shared_barrier(row: RowCandidates, question: SurveyQuestion, *, fits: bool) -> Barrier:
    """Return what keeps all candidates of *row* away."""
    if question.verdicts and question.verdicts[row.row].denial:
        return Barrier.DENIED
    if row.is_provider and question.api is Api.ANTHROPIC_MESSAGES:
        return Barrier.API
    return Barrier.NONE if fits else Barrier.CONTEXT


def _last_resort(
    away: Sequence[tuple[Tier, Surveyed]],
    kept_away: tuple[Surveyed, ...],
    overflow: ContextOverflow,
) -> Survey:
    """Return whom to try where nobody may be picked."""
    suppressed = [entry for entry in away if _is_worth_a_try(entry[1])]
    fitting = [entry for entry in suppressed if entry[1].fits]
    if fitting:
        return Survey(fields=_fields(fitting), kept_away=kept_away, panics=True)
    if overflow is ContextOverflow.LARGEST:
        too_small = [entry for entry in away if entry[1].barrier is Barrier.CONTEXT]
        largest = _largest(too_small or suppressed)
        if largest:
            return Survey(
                fields=_fields(largest),
                kept_away=kept_away,
                panics=not too_small,
                exceeds=True,
            )
    return Survey(fields=(), kept_away=kept_away, refusal=refusal_of(kept_away, overflow))


def refusal_of(kept_away: Sequence[Surveyed], overflow: ContextOverflow) -> str:
    """Return why a request goes nowhere, as a ``key=value`` pair.

    Where the pool refuses what fits nowhere, nobody needs to wait for a window that is too small.

    Args:
        kept_away: All candidates.
        overflow: What becomes of a request that fits nowhere.
    """
    too_small = Barrier.CONTEXT if overflow is ContextOverflow.REJECT else None
    barriers = {
        barrier if fits or barrier in _FINAL else too_small or barrier
        for _, barrier, fits in kept_away
    }
    for barrier, reason in _REFUSALS.items():
        if barrier in barriers:
            return reason
    return "candidates=none"


def _is_worth_a_try(surveyed: Surveyed) -> bool:
    return surveyed.candidate.endpoint is not None and surveyed.barrier in _PANIC


def _largest(away: Sequence[tuple[Tier, Surveyed]]) -> list[tuple[Tier, Surveyed]]:
    """Return those with the largest window."""
    largest = max((_window(surveyed) for _, surveyed in away), default=0)
    return [entry for entry in away if _window(entry[1]) == largest]


def _window(surveyed: Surveyed) -> int:
    return surveyed.candidate.model.context_window or 0


def _fields(entries: Sequence[tuple[Tier, Surveyed]]) -> tuple[TierField, ...]:
    by_tier: dict[str, tuple[Tier, list[Candidate]]] = {}
    for tier, surveyed in entries:
        by_tier.setdefault(tier.name, (tier, []))[1].append(surveyed.candidate)
    return tuple(TierField(tier, tuple(candidates)) for tier, candidates in by_tier.values())
