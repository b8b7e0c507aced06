"""The director: takes requests through the pipeline, step by step, and whoever chooses with it.

Use it like this; each step may be left out, their order may not change::

    run = director.open(question)
    refusal = run.pre_admit()                    # then rules, then candidates
    run.give(known)                              # what is known of them without plugins
    await run.produce(endpoints)
    refusal = run.admit(endpoints)
    ranking = run.rank(endpoints_of_a_tier, "its profile")
    placed = run.pre_request(ranking)            # the last step; nothing may wait behind it
    Choice(..., follower=placed.follower)        # or the refusal

Rules of this file: nothing a plugin does ends a Pick, but for the three that may say no: a
PreAdmitter, an Admitter, and PreRequest plugins that fail for two endpoints in a row. What else
fails is left out, told to the observer, and named in :attr:`PipelineRun.degraded`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVarTuple, Unpack

import msgspec

from inferencecache.picker.choice import Outcome, Question, Refusal
from inferencecache.picker.decisions import DecisionFollower, Ending
from inferencecache.picker.pipeline.attributes import WritableAttributes
from inferencecache.picker.pipeline.endpoint import EndpointView
from inferencecache.picker.pipeline.faults import DeniedError, InvalidAnswerError
from inferencecache.picker.pipeline.following import ResponseFollower, ResponsePlugins
from inferencecache.picker.pipeline.guard import PluginFailure, guarded
from inferencecache.picker.pipeline.keys import GIVEN_KEYS
from inferencecache.picker.pipeline.observer import FailureKind, Hook, PipelineObserver
from inferencecache.picker.pipeline.pipeline import EMPTY_PIPELINE, Pipeline
from inferencecache.picker.pipeline.plugin import HookT, Named
from inferencecache.picker.pipeline.produced import Produced
from inferencecache.picker.pipeline.producer_work import ProducerRunner, ProducerWork
from inferencecache.picker.pipeline.profile import run_profile
from inferencecache.picker.pipeline.reasons import token_text
from inferencecache.picker.pipeline.request import Request
from inferencecache.picker.pipeline.scheduling import Ranking, SchedulingResult

Arguments = TypeVarTuple("Arguments")

_ATTEMPTS = 2
"""Endpoints that PreRequest plugins are asked about: the best one, and the next best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectorParts:
    """What a director works with.

    Attributes:
        pipeline: The plugins.
        runner: Runs producers.
        observer: Counts and logs.
        attributes_max: Most attributes of a request.
        bytes_per_token: How long a token of a text is believed to be.
        keys: Names of requests, each once: directors that follow one another share them.
    """

    pipeline: Pipeline
    runner: ProducerRunner
    observer: PipelineObserver
    attributes_max: int
    bytes_per_token: int
    keys: Iterator[int] = field(default_factory=lambda: count(1))


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A request has an endpoint, and all PreRequest plugins know.

    Attributes:
        endpoint: Where it goes.
        ranking: How that came about.
        follower: To be told how it goes on; None if no plugin wants to know.
    """

    endpoint: EndpointView
    ranking: Ranking
    follower: DecisionFollower | None


class Director:
    """Takes requests through one pipeline.

    Args:
        parts: Its collaborators.

    Attributes:
        profile_names: The profiles that tiers may name.
    """

    __slots__ = ("_parts", "_produced", "profile_names")

    def __init__(self, parts: DirectorParts) -> None:
        self._parts = parts
        self.profile_names = tuple(parts.pipeline.profiles)
        self._produced = frozenset(
            name for step in parts.pipeline.producers for name in step.produces
        )

    def open(self, question: Question) -> "PipelineRun":
        """Begin with a request."""
        parts = self._parts
        attributes = WritableAttributes(parts.attributes_max)
        request = Request(next(parts.keys), question, attributes, parts.bytes_per_token)
        return PipelineRun(parts, question, request, self._produced)


class PipelineRun:
    """One request on its way; :class:`Director` makes it.

    Attributes:
        question: What came with it.
        request: As plugins see it.
        degraded: What failed so far, as tokens for the reason: ``plugin:way``.
    """

    __slots__ = (
        "_given",
        "_missing",
        "_parts",
        "_pipeline",
        "_produced",
        "degraded",
        "question",
        "request",
    )

    def __init__(
        self,
        parts: DirectorParts,
        question: Question,
        request: Request,
        produced: frozenset[str],
    ) -> None:
        self._parts = parts
        self._pipeline = parts.pipeline
        self._produced = produced
        self._missing: set[str] = set()
        self._given = 0
        self.question = question
        self.request = request
        self.degraded: list[str] = []

    @property
    def has_plugins(self) -> bool:
        """Whether there is anybody to be told anything."""
        return self._pipeline is not EMPTY_PIPELINE

    def pre_admit(self) -> Refusal | None:
        """Let PreAdmitters change the request; the first that raises stops it."""
        for step in self._pipeline.pre_admitters:
            failure = _said(step.plugin.pre_admit, self.request)
            if failure is not None:
                return self._denied(step.name, Hook.PRE_ADMIT, failure.error)
        self.request.attributes.is_closed = True
        return None

    def give(self, known: Produced) -> None:
        """Tell plugins what whoever chooses knows; what they say themselves stays theirs.

        Args:
            known: About the request, and about its endpoints.
        """
        attributes = self.request.attributes
        own = self._produced.union(attributes) if len(attributes) else self._produced
        said = known.about_request.keys() | own
        for values in known.about_endpoints.values():
            said |= values.keys()
        self._missing = set(GIVEN_KEYS - said)
        about_request = {
            name: value for name, value in known.about_request.items() if name not in own
        }
        attributes.commit(about_request)
        self._given = len(about_request)
        for endpoint, values in known.about_endpoints.items():
            given = {name: value for name, value in values.items() if name not in own}
            if given:
                endpoint.attributes = endpoint.attributes.joined(given)

    async def produce(self, endpoints: Sequence[EndpointView]) -> None:
        """Let producers find out what they can about the request and its candidates."""
        self.request.attributes.is_closed = True
        if not self._pipeline.producers:
            return
        parts = self._parts
        work = ProducerWork(
            self._pipeline.producers,
            self.request,
            tuple(endpoints),
            parts.observer,
            parts.attributes_max + self._given,
        )
        work.missing |= self._missing
        await parts.runner.run(work)
        self._missing = work.missing
        self.degraded.extend(f"{name}:{kind}" for name, kind in work.failed)

    def admit(self, endpoints: Sequence[EndpointView]) -> Refusal | None:
        """Ask all Admitters; one that breaks has no say."""
        asked = tuple(endpoints)  # a plugin may do with it as it likes
        for step in _with_data(self._pipeline.admitters, self._missing):
            failure = _said(step.plugin.admit, self.request, asked)
            if failure is None:
                continue
            if isinstance(failure.error, DeniedError):
                return self._denied(step.name, Hook.ADMIT, failure.error)
            self._fail(step.name, Hook.ADMIT, _kind(failure.error), failure.error)
        return None

    def rank(self, endpoints: Sequence[EndpointView], profile: str = "") -> Ranking:
        """Put *endpoints* in order by a profile.

        Args:
            endpoints: Those of one tier.
            profile: The profile that the tier names; empty lets the profile handler choose.

        Raises:
            KeyError: There is no such profile, or none at all; see
                :attr:`Director.profile_names`.
        """
        chosen = self._pipeline.profiles[profile or self._handled()]
        return run_profile(chosen, self.request, tuple(endpoints), self._missing, self._fail)

    def pre_request(self, ranking: Ranking) -> Placed | Refusal:
        """Tell PreRequest plugins of the best endpoint of *ranking*, or of the next best one."""
        failed: list[str] = []
        for scored in ranking.order[:_ATTEMPTS]:
            follower = self._follower(scored.endpoint)
            failed = self._told(SchedulingResult(endpoint=scored.endpoint, ranking=ranking))
            if not failed:
                self.request.let_go_of_body()
                return Placed(endpoint=scored.endpoint, ranking=ranking, follower=follower)
            if follower is not None:
                follower.ended(Ending.UNSETTLED, None)
        self.request.let_go_of_body()
        reason = f"pre_request={','.join(failed)}" if failed else "candidates=none"
        return Refusal(outcome=Outcome.NO_WORKERS, reason=reason)

    def _told(self, result: SchedulingResult) -> list[str]:
        """Tell all PreRequest plugins and return the names of those that fail."""
        failed = []
        for step in _with_data(self._pipeline.pre_requests, self._missing):
            answer = guarded(step.plugin.pre_request, self.request, result)
            if isinstance(answer, PluginFailure):
                failed.append(step.name)
                self._fail(step.name, Hook.PRE_REQUEST, FailureKind.RAISED, answer.error)
        return failed

    def _handled(self) -> str:
        """Return the profile that the profile handler names, or the first one."""
        names = tuple(self._pipeline.profiles)
        if not names:
            return ""
        handler = self._pipeline.profile_handler
        if handler is not None:
            answer = guarded(handler.plugin.profile, self.request, names)
            if isinstance(answer, PluginFailure):
                self._fail(handler.name, Hook.PROFILE, FailureKind.RAISED, answer.error)
            elif answer in names:
                return answer
            else:
                self._fail(handler.name, Hook.PROFILE, FailureKind.INVALID, KeyError(answer))
        return names[0]

    def _follower(self, endpoint: EndpointView) -> ResponseFollower | None:
        if not self._pipeline.follows_responses:
            return None
        plugins = ResponsePlugins(
            headers=_with_data(self._pipeline.header_processors, self._missing),
            bodies=_with_data(self._pipeline.body_processors, self._missing),
        )
        return ResponseFollower(plugins, self.request, endpoint, self._parts.observer)

    def _denied(self, plugin: str, hook: Hook, error: BaseException) -> Refusal:
        """Return the answer to a request that *plugin* stopped."""
        self.request.let_go_of_body()
        if isinstance(error, DeniedError):
            why = token_text(error.reason)
        else:
            why = _kind(error).value
            self._fail(plugin, hook, _kind(error), error)
        reason = f"denied_by={plugin};denial={why}"
        return Refusal(outcome=Outcome.POLICY_REJECTED, reason=reason)

    def _fail(self, plugin: str, hook: Hook, kind: FailureKind, error: BaseException) -> None:
        token = f"{plugin}:{kind}"
        if token not in self.degraded:  # several tiers may have asked
            self.degraded.append(token)
        self._parts.observer.plugin_failed(plugin, hook, kind, error)


def _said(ask: Callable[[Unpack[Arguments]], object], *args: *Arguments) -> PluginFailure | None:
    """Return how a plugin says no; one that returns anything might mean that, and has failed."""
    answer = guarded(ask, *args)
    if answer is None or isinstance(answer, PluginFailure):
        return answer
    return PluginFailure(InvalidAnswerError(f"returned {type(answer).__name__}"))


def _kind(error: BaseException) -> FailureKind:
    return FailureKind.INVALID if isinstance(error, InvalidAnswerError) else FailureKind.RAISED


def _with_data(steps: tuple[Named[HookT], ...], missing: set[str]) -> tuple[Named[HookT], ...]:
    """Return those of *steps* that lack no key they need."""
    for step in steps:
        if not step.needs.isdisjoint(missing):
            return tuple(each for each in steps if each.needs.isdisjoint(missing))
    return steps  # nearly always
