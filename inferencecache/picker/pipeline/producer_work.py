"""The producers of one request: who may run, who came back, and whose data is missing.

Rules of this file: whoever runs the producers asks :meth:`ProducerWork.ready` what to start and
tells what became of each of them, once; what a producer found counts from that moment, all of it or
nothing; a producer that fails takes with it those that need its keys, and nobody else.
"""

from collections.abc import Sequence
from typing import Protocol

from inferencecache.clock import Clock
from inferencecache.picker.pipeline.endpoint import EndpointView
from inferencecache.picker.pipeline.guard import PluginFailure, guarded
from inferencecache.picker.pipeline.hooks import ImmediateProducer
from inferencecache.picker.pipeline.observer import FailureKind, Hook, PipelineObserver
from inferencecache.picker.pipeline.produced import Produced
from inferencecache.picker.pipeline.producer_plan import ProducerStep
from inferencecache.picker.pipeline.request import Request


class UnusableProductError(Exception):
    """What a producer handed back cannot be used.

    Args:
        kind: In which way.
        detail: What it is.
    """

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class ProducerWork:
    """What is to be produced for one request.

    Args:
        steps: The producers in order.
        request: For whom.
        endpoints: Its candidates.
        observer: Told about failures and durations.
        attributes_max: Most attributes of the request; those of endpoints are bounded by the
            keys that there are.

    Attributes:
        request: As given.
        endpoints: As given.
        missing: Names of the keys that failed or were left out.
        failed: Producers that failed, with the way in which they did.
    """

    __slots__ = (
        "_attributes_max",
        "_observer",
        "_settled",
        "_waiting",
        "endpoints",
        "failed",
        "missing",
        "request",
    )

    def __init__(
        self,
        steps: Sequence[ProducerStep],
        request: Request,
        endpoints: Sequence[EndpointView],
        observer: PipelineObserver,
        attributes_max: int,
    ) -> None:
        self._waiting = list(steps)
        self._settled: set[int] = set()
        self._observer = observer
        self._attributes_max = attributes_max
        self.request = request
        self.endpoints = endpoints
        self.missing: set[str] = set()
        self.failed: list[tuple[str, FailureKind]] = []

    def ready(self) -> list[ProducerStep]:
        """Return the producers that can be started now, and take them off the list."""
        started: list[ProducerStep] = []
        waiting: list[ProducerStep] = []
        for step in self._waiting:  # in order, so that whoever is left out takes others along
            if not step.needs.isdisjoint(self.missing):
                self._leave_out(step)
            elif step.after <= self._settled:
                started.append(step)
            else:
                waiting.append(step)
        self._waiting = waiting
        return started

    def ran(self, step: ProducerStep, immediate: ImmediateProducer, clock: Clock) -> None:
        """Run a producer that never waits, and take what it hands back."""
        started_ns = clock.monotonic_ns()
        product = guarded(immediate.produce_now, self.request, self.endpoints)
        if isinstance(product, PluginFailure):
            self.fell_out(step, FailureKind.RAISED, product.error)
        else:
            self.finished(step, product, clock.monotonic_ns() - started_ns)

    def finished(self, step: ProducerStep, product: object, duration_ns: int) -> None:
        """Take what a producer handed back in time."""
        try:
            taken = self._checked(step, product)
        except UnusableProductError as error:
            self.fell_out(step, error.kind, error)
            return
        self._take(taken)
        self._settled.add(step.index)
        self._observer.produced(step.name, duration_ns)

    def fell_out(
        self, step: ProducerStep, kind: FailureKind, error: BaseException | None = None
    ) -> None:
        """Take note that a producer failed."""
        self._leave_out(step)
        self.failed.append((step.name, kind))
        self._observer.plugin_failed(step.name, Hook.PRODUCE, kind, error)

    def _leave_out(self, step: ProducerStep) -> None:
        self._settled.add(step.index)
        self.missing.update(step.produces)

    def _checked(self, step: ProducerStep, product: object) -> Produced:
        if not isinstance(product, Produced):
            raise UnusableProductError(FailureKind.INVALID, f"returned {type(product).__name__}")
        if not product.about_endpoints.keys() <= set(self.endpoints):
            raise UnusableProductError(FailureKind.INVALID, "spoke of a strange endpoint")
        _check_values(product, step)
        if len(self.request.attributes) + len(product.about_request) > self._attributes_max:
            what = f"more than {self._attributes_max} attributes"
            raise UnusableProductError(FailureKind.INVALID, what)
        return product

    def _take(self, product: Produced) -> None:
        self.request.attributes.commit(product.about_request)
        for endpoint, values in product.about_endpoints.items():
            endpoint.attributes = endpoint.attributes.joined(values)


def _check_values(product: Produced, step: ProducerStep) -> None:
    kinds = {name: key.kind for name, key in step.produces.items()}
    for values in (product.about_request, *product.about_endpoints.values()):
        for name, value in values.items():
            kind = kinds.get(name)
            if type(value) is kind:  # nearly always
                continue
            if kind is None:
                raise UnusableProductError(FailureKind.UNDECLARED, f"wrote {name}")
            if not isinstance(value, kind):
                what = f"{name} as {type(value).__name__}"
                raise UnusableProductError(FailureKind.INVALID, what)


class ProducerRunner(Protocol):
    """Runs producers, each for no longer than it may take."""

    async def run(self, work: ProducerWork) -> None:
        """Run all of *work*: start what is ready, tell it what became of each, until none is left.

        Cancelling it leaves nothing behind that could still change the request.
        """
        ...
