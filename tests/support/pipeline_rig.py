"""Requests, endpoints, plugins that do as they are told, and a director without a server."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inferencecache.clock import ManualClock
from inferencecache.picker.bodies import Rope
from inferencecache.picker.choice import Question
from inferencecache.picker.destination import LocalDestination, ProviderDestination
from inferencecache.picker.fleet import (
    Candidate,
    Endpoint,
    EngineKind,
    ModelRow,
    ObjectName,
    PriorsForEngine,
    Provider,
    WorkerSet,
)
from inferencecache.picker.pipeline import (
    AttributeKey,
    Director,
    DirectorParts,
    EndpointView,
    FailureKind,
    Hook,
    LoadSnapshot,
    Pipeline,
    Produced,
    ProducerRunner,
    ProducerWork,
    Request,
    Response,
    SchedulingResult,
)
from inferencecache.picker.pipeline.attributes import WritableAttributes
from inferencecache.picker.pipeline.build import PipelineSources, build_pipeline
from inferencecache.picker.pipeline.config import PipelineConfig, PluginEntry, ProfileEntry
from inferencecache.picker.pipeline.config import ProfileStep as Step
from inferencecache.picker.pipeline.hooks import Keys
from inferencecache.picker.pipeline.parameters import PluginParameters, read_parameters
from inferencecache.picker.pipeline.registry import PluginRegistry, PluginServices, PluginType
from inferencecache.picker.plugins import BUILTIN_TYPES
from inferencecache.picker.request import Affinity, Api, InferenceRequest
from inferencecache.settings.picker_plugins import PickerPluginSettings
from inferencecache.transport.picker_producers import ProducerTasks
from inferencecache.transport.system_clock import SystemClock

SETTINGS = PickerPluginSettings()


def parsed(model: str = "m", **fields: object) -> InferenceRequest:
    """Return a parsed body."""
    return InferenceRequest(
        api=Api.CHAT_COMPLETIONS, model=model, model_names=(model,), model_spans=(), **fields
    )


def question(
    *,
    headers: Mapping[str, str] | None = None,
    tenant: str = "",
    affinity: Affinity | None = None,
    content: bytes = b"",
    request_id: str = "",
    prompt_tokens: int | None = None,
    prompt_bytes: int | None = None,
) -> Question:
    """Return what a Pick asks."""
    request = parsed(
        affinity=affinity or Affinity(), prompt_tokens=prompt_tokens, prompt_bytes=prompt_bytes
    )
    return Question(
        request=request,
        content=Rope([content]),
        tenant=tenant,
        client_request_id=request_id,
        headers=headers or {},
    )


def request(asked: Question | None = None, key: int = 1, *, bytes_per_token: int = 4) -> Request:
    """Return a request as plugins see it."""
    attributes = WritableAttributes(SETTINGS.attributes_max)
    return Request(key, asked or question(), attributes, bytes_per_token)


def worker(
    name: str,
    *,
    load: LoadSnapshot | None = None,
    labels: Mapping[str, str] | None = None,
    weight: float = 1.0,
    row: ModelRow | None = None,
) -> EndpointView:
    """Return an endpoint of a worker set, at an address that is its name."""
    endpoint = Endpoint(
        name=name, address=name, labels=tuple((labels or {}).items()), weight=weight
    )
    row = row or ModelRow(name="target")
    member = WorkerSet(
        key=ObjectName(namespace="default", name="set"),
        models=(row,),
        endpoints=(endpoint,),
        engine=EngineKind.VLLM,
        block_size_tokens=16,
        hash_scheme="",
        index_tenant="",
        tokenizer="",
        chat_template="",
        priors=PriorsForEngine(prefill_tokens_per_s=8_000, base_ttft_ms=50, concurrency_max=256),
    )
    candidate = Candidate(
        member=member,
        endpoint=endpoint,
        model=row,
        destination=LocalDestination(endpoint=name),
    )
    return EndpointView(candidate, load or LoadSnapshot())


def provider(name: str = "outside") -> EndpointView:
    """Return a provider."""
    row = ModelRow(name="target")
    key = ObjectName(namespace="default", name=name)
    candidate = Candidate(
        member=Provider(key=key, backend=key, models=(row,)),
        endpoint=None,
        model=row,
        destination=ProviderDestination(namespace="default", backend=name),
    )
    return EndpointView(candidate)


def workers(*names: str) -> list[EndpointView]:
    """Return endpoints with these names."""
    return [worker(name) for name in names]


def say(endpoint: EndpointView, key: AttributeKey[Any], value: object) -> None:
    """Say something about *endpoint*, as a producer would."""
    endpoint.attributes = endpoint.attributes.joined({key.name: value})


@dataclass
class Noted:
    """What an observer was told.

    Attributes:
        failures: Plugin, hook and kind of each failure, in order.
        errors: What was raised, in the same order.
        produced_by: Producers that came in time.
    """

    failures: list[tuple[str, Hook, FailureKind]] = field(default_factory=list)
    errors: list[BaseException | None] = field(default_factory=list)
    produced_by: list[str] = field(default_factory=list)

    def plugin_failed(
        self, plugin: str, hook: Hook, kind: FailureKind, error: BaseException | None
    ) -> None:
        """Take note."""
        self.failures.append((plugin, hook, kind))
        self.errors.append(error)

    def produced(self, producer: str, duration_ns: int) -> None:
        """Take note."""
        assert duration_ns >= 0
        self.produced_by.append(producer)


class InOrder:
    """Runs producers that do not wait, one after the other, without an event loop."""

    async def run(self, work: ProducerWork) -> None:
        """Run all of *work*."""
        while steps := work.ready():
            for step in steps:
                try:
                    product = await step.plugin.produce(work.request, work.endpoints)
                except Exception as error:  # noqa: BLE001 - plugins may raise anything
                    work.fell_out(step, FailureKind.RAISED, error)
                else:
                    work.finished(step, product, 0)


def plugin_type(name: str, plugin: object, default_for: tuple[Any, ...] = ()) -> PluginType[Any]:
    """Return a type whose only plugin is *plugin*."""
    return PluginType(
        name=name,
        parameters=PluginParameters,
        make=lambda _parameters, _services: plugin,
        default_for=default_for,
    )


def registry(**plugins: object) -> PluginRegistry:
    """Return the product's types and one for each of *plugins*, named after its keyword."""
    types = [plugin_type(name, plugin) for name, plugin in plugins.items()]
    return PluginRegistry([*BUILTIN_TYPES, *types])


def draws(*numbers: float) -> Callable[[], float]:
    """Return a source of random numbers that returns these, again and again."""
    position = [0]

    def draw() -> float:
        position[0] += 1
        return numbers[(position[0] - 1) % len(numbers)]

    return draw


def sources(known: PluginRegistry, draw: Callable[[], float] | None = None) -> PipelineSources:
    """Return what a pipeline is built from."""
    return PipelineSources(
        registry=known,
        services=PluginServices(clock=ManualClock(), draw=draw or draws(0.5)),
        settings=SETTINGS,
    )


def pipeline(
    *entries: PluginEntry, profiles: Sequence[ProfileEntry] = (), **more: object
) -> Pipeline:
    """Build a pipeline; *more* are plugins that are registered and configured by their name."""
    draw = more.pop("draw", None)
    config = PipelineConfig(
        plugins=(*entries, *(PluginEntry(type=name) for name in more)), profiles=tuple(profiles)
    )
    return build_pipeline(config, sources(registry(**more), draw))


def made(type_name: str, *, draw: Callable[[], float] | None = None, **parameters: object) -> Any:
    """Return a plugin of the product as a configuration would make it."""
    known = PluginRegistry(BUILTIN_TYPES)
    found = known.find(type_name, "type")
    read = read_parameters(parameters, found.parameters, "parameters")
    return found.make(read, sources(known, draw).services)


def profile(name: str, *steps: str | tuple[str, float]) -> ProfileEntry:
    """Return the entry of a profile; a step is a plugin, or a plugin and its weight."""
    return ProfileEntry(
        name=name,
        steps=tuple(
            Step(plugin=step) if isinstance(step, str) else Step(plugin=step[0], weight=step[1])
            for step in steps
        ),
    )


def director(
    built: Pipeline, noted: Noted | None = None, runner: ProducerRunner | None = None
) -> Director:
    """Return a director of *built*."""
    return Director(
        DirectorParts(
            pipeline=built,
            runner=InOrder() if runner is None else runner,
            observer=Noted() if noted is None else noted,
            attributes_max=SETTINGS.attributes_max,
            bytes_per_token=4,
        )
    )


def task_runner(running_max: int = 100) -> ProducerTasks:
    """Return a runner of producers as tasks."""
    return ProducerTasks(SystemClock(), running_max)


class Scoring:
    """Gives the points it was made with, by name of the endpoint."""

    def __init__(self, **points: float) -> None:
        self.points = points

    def score(self, _request: Request, endpoints: Sequence[EndpointView]) -> Sequence[float]:
        """Return the points."""
        return [self.points.get(endpoint.name, 0.0) for endpoint in endpoints]


class Raising:
    """Raises in every hook that it is asked for by name."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error or RuntimeError("told to")

    def _raise(self, *_: object) -> object:
        raise self.error


def raising(hook: str, error: BaseException | None = None) -> object:
    """Return a plugin with one hook that raises."""
    return type("Raising", (Raising,), {hook: Raising._raise})(error)


class Following:
    """Keeps what PreRequest and the response hooks are told."""

    def __init__(self) -> None:
        self.requests: list[tuple[int, str]] = []
        self.headers: list[Response] = []
        self.bodies: list[Response] = []
        self.endpoints: list[str] = []

    def pre_request(self, request: Request, result: SchedulingResult) -> None:
        """Take note."""
        self.requests.append((request.key, result.endpoint.name))

    def response_header(
        self, _request: Request, response: Response, _endpoint: EndpointView
    ) -> None:
        """Take note."""
        self.headers.append(response)

    def response_body(self, _request: Request, response: Response, endpoint: EndpointView) -> None:
        """Take note."""
        self.bodies.append(response)
        self.endpoints.append(endpoint.name)


class Making:
    """A producer that says 1 under each of its keys, about the request."""

    def __init__(self, *makes: AttributeKey[int], needs: Keys = (), uses: Keys = ()) -> None:
        self.produces = makes
        self.consumes = tuple(needs)
        self.may_consume = tuple(uses)
        self.calls = 0

    async def produce(self, _request: Request, _endpoints: Sequence[EndpointView]) -> Produced:
        """Say so."""
        self.calls += 1
        produced = Produced()
        for key in self.produces:
            produced.put(key, 1)
        return produced


def key(name: str) -> AttributeKey[int]:
    """Return a key of numbers."""
    return AttributeKey(name, int)
