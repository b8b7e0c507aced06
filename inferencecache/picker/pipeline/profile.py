"""Scheduling profiles: filters in order, scorers, one picker."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final

from inferencecache.picker.pipeline.endpoint import EndpointView
from inferencecache.picker.pipeline.faults import InvalidAnswerError, NoSignalError
from inferencecache.picker.pipeline.guard import PluginFailure, guarded
from inferencecache.picker.pipeline.hooks import Filter, Picker, Scorer
from inferencecache.picker.pipeline.observer import FailureKind, Hook
from inferencecache.picker.pipeline.plugin import Named
from inferencecache.picker.pipeline.request import Request
from inferencecache.picker.pipeline.scheduling import Ranking, Scored, ScorePart

_tuple: Final = tuple.__new__
"""Makes a named tuple as its constructor does, but without a call of a Python function."""

Fail = Callable[[str, Hook, FailureKind, BaseException], None]
"""Told the plugin, the hook, the way in which it failed, and what it raised."""


@dataclass(frozen=True, slots=True)
class WeightedScorer:
    """A scorer and what its points are worth in one profile.

    Attributes:
        scorer: The plugin.
        weight: At least 0.
    """

    scorer: Named[Scorer]
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One way of putting endpoints in order.

    Attributes:
        name: In the configuration.
        filters: Leave endpoints out, in order.
        scorers: Give points.
        picker: Puts what was scored in order.
    """

    name: str
    filters: tuple[Named[Filter], ...]
    scorers: tuple[WeightedScorer, ...]
    picker: Named[Picker]


def run_profile(
    profile: Profile,
    request: Request,
    endpoints: tuple[EndpointView, ...],
    missing: set[str],
    fail: Fail,
) -> Ranking:
    """Put *endpoints* in order; whatever in *profile* fails, or lacks its keys, is left out.

    Args:
        profile: How.
        request: For whom.
        endpoints: The candidates.
        missing: Names of the keys that nobody could produce.
        fail: Told what fails.
    """
    for step in profile.filters:
        if endpoints and step.needs.isdisjoint(missing):
            endpoints = _filtered(step, request, endpoints, fail)
    if not endpoints:
        return Ranking(profile=profile.name, order=())
    totals = [0.0] * len(endpoints)
    parts: list[ScorePart] = []
    for weighted in profile.scorers:
        if not weighted.scorer.needs.isdisjoint(missing):
            continue
        scores = _scores(weighted.scorer, request, endpoints, fail)
        if scores is not None:
            parts.append(ScorePart(weighted.scorer.name, weighted.weight, scores))
            weight = weighted.weight
            totals = [total + weight * score for total, score in zip(totals, scores, strict=True)]
    scored = tuple([_tuple(Scored, pair) for pair in zip(endpoints, totals, strict=True)])
    order = _order(profile.picker, request, scored, fail)
    return Ranking(profile=profile.name, order=order, scored=endpoints, parts=tuple(parts))


def _filtered(
    step: Named[Filter], request: Request, endpoints: tuple[EndpointView, ...], fail: Fail
) -> tuple[EndpointView, ...]:
    kept = guarded(_kept, step.plugin, request, endpoints)
    if isinstance(kept, PluginFailure):
        fail(step.name, Hook.FILTER, _kind(kept.error), kept.error)
        return endpoints
    return kept


def _kept(
    step: Filter, request: Request, endpoints: tuple[EndpointView, ...]
) -> tuple[EndpointView, ...]:
    answer = step.filter(request, endpoints)
    if not isinstance(answer, Iterable):
        raise InvalidAnswerError(f"returned {type(answer).__name__} for endpoints")
    kept = set(map(id, answer))
    left = tuple([endpoint for endpoint in endpoints if id(endpoint) in kept])
    if len(left) != len(kept):
        raise InvalidAnswerError("returned an endpoint that it was not given")
    return left


def _scores(
    scorer: Named[Scorer], request: Request, endpoints: Sequence[EndpointView], fail: Fail
) -> tuple[float, ...] | None:
    scores = guarded(_clamped, scorer.plugin, request, endpoints)
    if isinstance(scores, PluginFailure):
        fail(scorer.name, Hook.SCORE, _kind(scores.error), scores.error)
        return None
    return scores


def _clamped(
    scorer: Scorer, request: Request, endpoints: Sequence[EndpointView]
) -> tuple[float, ...]:
    scores = scorer.score(request, endpoints)
    try:
        if len(scores) != len(endpoints):
            what = f"returned {len(scores)} scores for {len(endpoints)} endpoints"
            raise InvalidAnswerError(what)
        if isnan(sum(scores)):
            raise InvalidAnswerError("returned a score that is not a number")
        if min(scores) >= 0.0 and max(scores) <= 1.0:
            return tuple(scores)
        return tuple([min(max(float(score), 0.0), 1.0) for score in scores])
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidAnswerError("returned something else than a list of numbers") from error


def _order(
    picker: Named[Picker], request: Request, scored: Sequence[Scored], fail: Fail
) -> tuple[Scored, ...]:
    """Return all of *scored*: what the picker put first, then the rest by score."""
    picked = guarded(_picked, picker.plugin, request, scored)
    if isinstance(picked, PluginFailure):
        fail(picker.name, Hook.PICK, _kind(picked.error), picked.error)
        picked = []
    if len(picked) == len(scored):
        return tuple(picked)
    chosen = {id(entry.endpoint) for entry in picked}
    rest = [entry for entry in scored if id(entry.endpoint) not in chosen]
    rest.sort(key=lambda entry: (-entry.score, entry.endpoint.name))
    return (*picked, *rest)


def _picked(picker: Picker, request: Request, scored: Sequence[Scored]) -> Sequence[Scored]:
    picked = picker.pick(request, scored)
    if not isinstance(picked, Sequence):
        raise InvalidAnswerError(f"returned {type(picked).__name__} for endpoints")
    if not picked or not (_is_part(picked, scored) or _names_part(picked, scored)):
        raise InvalidAnswerError("returned no endpoint, a strange one, or one of them twice")
    return picked


def _is_part(picked: Sequence[Scored], scored: Sequence[Scored]) -> bool:
    """Return whether *picked* are objects out of *scored*, each once; true in most cases."""
    taken = set(map(id, picked))
    return len(taken) == len(picked) and taken <= set(map(id, scored))


def _names_part(picked: Sequence[Scored], scored: Sequence[Scored]) -> bool:
    """Return whether *picked* name endpoints out of *scored*, each once."""
    taken = {id(entry.endpoint) for entry in picked}
    return len(taken) == len(picked) and taken <= {id(entry.endpoint) for entry in scored}


def _kind(error: BaseException) -> FailureKind:
    if isinstance(error, NoSignalError):
        return FailureKind.NO_SIGNAL
    return FailureKind.INVALID if isinstance(error, InvalidAnswerError) else FailureKind.RAISED
