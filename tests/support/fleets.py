"""Fleets for tests, and a chooser that works on one."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from inferencecache.app.picker_plugins import no_plugins
from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.picker.bodies import Rope
from inferencecache.picker.choice import Choice, PoolName, QosClass, Question, Refusal
from inferencecache.picker.choosing import (
    ChooserParts,
    Exploration,
    FailedPlaces,
    FailureKind,
    FleetChooser,
    InForce,
    Knowledge,
    Limits,
    PolicyGate,
    Rewriting,
    Subject,
    Suppression,
    TtftRanker,
    WaitingRoom,
    fleet_index,
)
from inferencecache.picker.decisions import Ending
from inferencecache.picker.fleet import (
    ContextOverflow,
    Endpoint,
    EndpointRole,
    EngineKind,
    Fleet,
    Member,
    ModelRewrite,
    ModelRow,
    ObjectName,
    PickerPolicy,
    Pool,
    PriorsForEngine,
    Provider,
    RankBy,
    Tier,
    WorkerSet,
)
from inferencecache.picker.load import EngineSignals, LoadShare, LoadTable
from inferencecache.picker.pipeline import Director
from inferencecache.picker.prefix import NoPrefixSignal, PrefixSignal
from inferencecache.picker.request import Api, InferenceRequest
from inferencecache.picker.ttft import Foresight
from inferencecache.settings.picker_choice import PickerChoiceSettings, PickerSuppressionSettings
from inferencecache.settings.picker_load import PickerLoadSettings
from inferencecache.settings.picker_ttft import TtftSettings

NAMESPACE = "default"


def name_of(name: str, namespace: str = NAMESPACE) -> ObjectName:
    """Return the name of an object."""
    return ObjectName(namespace=namespace, name=name)


def row(name: str, *aliases: str, window: int | None = None, adapter_of: str = "") -> ModelRow:
    """Return a model of a member."""
    return ModelRow(name=name, aliases=aliases, context_window=window, adapter_of=adapter_of)


def worker_set(
    name: str,
    *rows: ModelRow,
    addresses: Iterable[str] = (),
    concurrency: int = 100,
    weights: dict[str, float] | None = None,
    roles: dict[str, EndpointRole] | None = None,
    generation: str = "1",
) -> WorkerSet:
    """Return a worker set, of one worker that is called after it if none are given."""
    return WorkerSet(
        key=name_of(name),
        models=rows,
        endpoints=tuple(
            Endpoint(
                name=address,
                address=address,
                weight=(weights or {}).get(address, 1.0),
                role=(roles or {}).get(address, EndpointRole.BOTH),
            )
            for address in tuple(addresses) or (f"{name}:1",)
        ),
        engine=EngineKind.VLLM,
        block_size_tokens=None,
        hash_scheme="",
        index_tenant="",
        tokenizer="",
        chat_template="",
        priors=PriorsForEngine(
            prefill_tokens_per_s=8_000.0, base_ttft_ms=50.0, concurrency_max=concurrency
        ),
        generation=generation,
    )


def provider(
    name: str, *rows: ModelRow, backend: str = "", path: str = "", generation: str = "1"
) -> Provider:
    """Return a provider, whose backend is called as it is if no other is given."""
    return Provider(
        key=name_of(name),
        backend=name_of(backend or name),
        models=rows,
        path=path,
        generation=generation,
    )


def tier(name: str, *members: Member, saturation: float = 1.0, profile: str | None = None) -> Tier:
    """Return a tier; with a profile, even an empty one, it is ranked by that."""
    return Tier(
        name=name,
        rank_by=RankBy.ESTIMATED_TTFT if profile is None else RankBy.PROFILE,
        profile=profile or "",
        members=members,
        saturation_max=saturation,
    )


def pool(
    name: str,
    *tiers: Tier,
    default_model: str = "",
    overflow: ContextOverflow = ContextOverflow.LARGEST,
    version: str = "",
    spills: bool = False,
) -> Pool:
    """Return a pool."""
    return Pool(
        key=name_of(name),
        tiers=tiers,
        default_model=default_model,
        context_overflow=overflow,
        spills_to_providers=spills,
        resource_version=version,
    )


def fleet(
    *tiers: Tier,
    pools: Iterable[Pool] = (),
    policies: Iterable[PickerPolicy] = (),
    rewrites: Iterable[ModelRewrite] = (),
    overflow: ContextOverflow = ContextOverflow.LARGEST,
    default_model: str = "",
    spills: bool = False,
) -> Fleet:
    """Return a fleet whose *tiers* are for Picks without a pool."""
    return Fleet(
        everything=pool("", *tiers, overflow=overflow, default_model=default_model, spills=spills),
        pools={each.key: each for each in pools},
        policies=tuple(policies),
        rewrites=tuple(rewrites),
    )


def question(
    model: str = "m",
    *,
    tenant: str = "",
    qos: QosClass = QosClass.INTERACTIVE,
    pool_name: str | None = None,
    namespace: str = "",
    version: str = "",
    api: Api = Api.CHAT_COMPLETIONS,
    prompt_tokens: int | None = None,
    prompt_bytes: int | None = None,
    output_tokens: int | None = None,
    deadline_ns: int | None = None,
    is_stream: bool = False,
    request_id: str = "",
    has_several_prompts: bool = False,
) -> Question:
    """Return what a Pick asks."""
    return Question(
        request=InferenceRequest(
            api=api,
            model=model,
            model_names=(model,) if model else (),
            model_spans=(),
            prompt_tokens=prompt_tokens,
            prompt_bytes=prompt_bytes,
            has_several_prompts=has_several_prompts,
            output_tokens_max=output_tokens,
            is_stream=is_stream,
        ),
        content=Rope(),
        tenant=tenant,
        qos=qos,
        client_request_id=request_id,
        deadline_ns=deadline_ns,
        pool=None
        if pool_name is None
        else PoolName(namespace=namespace, name=pool_name, resource_version=version),
    )


@dataclass
class ToldSuppressions:
    """Keeps what it is told."""

    edges: list[tuple[str, str]] = field(default_factory=list)

    def suppressed(self, subject: Subject, kind: FailureKind, duration_ns: int) -> None:
        """Keep who is left alone."""
        assert duration_ns > 0
        self.edges.append((str(subject), kind.value))

    def restored(self, subject: Subject, why: str) -> None:
        """Keep who is as good as new."""
        self.edges.append((str(subject), why))


@dataclass
class LearntThings:
    """Keeps what is learnt."""

    times: list[tuple[float, float]] = field(default_factory=list)
    gaps: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)

    def first_token_took(self, expected_ms: float, observed_ms: float) -> None:
        """Keep both times."""
        self.times.append((expected_ms, observed_ms))

    def gaps_between_tokens(self, candidate: str, counts: tuple[int, ...]) -> None:
        """Keep the counts."""
        self.gaps.append((candidate, counts))


class ChooserRig:
    """A chooser on a fleet, with a clock that stands still and draws that are given.

    Args:
        in_force: The fleet at first.
        director: Takes requests through plugins; None has none.
        settings: How destinations are chosen.
        clock: The time; None starts at 1,000 s.
        prefix: Knows where prompts are warm; None knows nothing.
    """

    def __init__(
        self,
        in_force: Fleet,
        director: Director | None = None,
        settings: PickerChoiceSettings | None = None,
        clock: ManualClock | None = None,
        prefix: PrefixSignal | None = None,
    ) -> None:
        self.clock = clock or ManualClock(1_000 * NS_PER_S)
        self.told = ToldSuppressions()
        self.jitter = 0.0
        self.draw = 0.0
        self.suppression = Suppression(PickerSuppressionSettings(), lambda: self.jitter, self.told)
        self.settings = settings or PickerChoiceSettings()
        self.failed = FailedPlaces(self.settings.failures_kept_max, self.settings.failures_kept_ns)
        self.limits = Limits(self.settings.limited_tenants_max)
        self.director = director or no_plugins()
        self.explore_draw = 1.0
        self.learnt = LearntThings()
        self.knowledge = Knowledge(
            loads=LoadTable(PickerLoadSettings(), 900 * NS_PER_S, self.clock),
            signals=EngineSignals(PickerLoadSettings().signal_stale_ns),
            foresight=Foresight(TtftSettings()),
        )
        self.ranker = TtftRanker(
            Exploration(self.settings.explore_share, lambda: self.explore_draw),
            self.knowledge.foresight.heard_ns,
        )
        self.parts = ChooserParts(
            settings=self.settings,
            clock=self.clock,
            knowledge=self.knowledge,
            ranker=self.ranker,
            suppression=self.suppression,
            failed=self.failed,
            gate=PolicyGate(self.limits),
            prefix=prefix or NoPrefixSignal(),
            observer=self.learnt,
        )
        self.chooser = FleetChooser(self.parts, self._in_force(in_force))
        self.install(in_force)

    def install(self, in_force: Fleet) -> None:
        """Put another fleet into force."""
        self.chooser.in_force = self._in_force(in_force)
        pools = (in_force.everything, *in_force.pools.values())
        self.suppression.adopt(
            member for each in pools for part in each.tiers for member in part.members
        )

    def let_wait(self, room: WaitingRoom) -> None:
        """Let requests that can wait do so in *room*."""
        self.chooser = FleetChooser(replace(self.parts, room=room), self.chooser.in_force)

    def load(self, name: str, requests: int = 1, prefill_tokens: int = 0) -> list[LoadShare]:
        """Let a candidate have more to do, each request with so many tokens to compute."""
        loads = self.knowledge.loads
        return [loads.place(name, prefill_tokens, 0) for _ in range(requests)]

    def choose(self, asked: Question, *, is_rehearsal: bool = False) -> Choice | Refusal:
        """Return the answer of a chooser that waits for nothing."""
        chooser = self.chooser
        steps = chooser.rehearse(asked) if is_rehearsal else chooser.choose(asked)
        try:
            steps.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("somebody waits")

    def chosen(self, asked: Question | None = None) -> Choice:
        """Return the choice; a refusal fails the test."""
        answer = self.choose(asked or question())
        assert isinstance(answer, Choice), answer
        return answer

    def refused(self, asked: Question | None = None) -> Refusal:
        """Return the refusal; a choice fails the test."""
        answer = self.choose(asked or question())
        assert isinstance(answer, Refusal), answer
        return answer

    def passed(self, asked: Question | None = None) -> Choice:
        """Choose, and let the request end at once without a word."""
        choice = self.chosen(asked)
        assert choice.follower is not None
        choice.follower.ended(Ending.EXPIRED, None)
        return choice

    def _in_force(self, in_force: Fleet) -> InForce:
        return InForce(
            index=fleet_index(in_force),
            rewriting=Rewriting(in_force.rewrites, lambda: self.draw),
            director=self.director,
        )


def tokens_of(reason: str) -> dict[str, str]:
    """Return the pairs of a reason."""
    return dict(pair.split("=", 1) for pair in reason.split(";"))
