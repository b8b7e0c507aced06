"""The hooks of the pipeline; a plugin is any object that has one or more of them.

Every hook but ``produce`` is called from one thread and must not wait. A plugin may have these
attributes besides, all of them optional:

=================  ================================================================================
``consumes``       keys it cannot work without: whoever produces them comes first, and where that
                   fails the plugin is left out
``may_consume``    keys it uses where they are there
``produces``       keys that its ``produce`` may write; required of a DataProducer
=================  ================================================================================
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from inferencecache.picker.pipeline.attributes import AttributeKey
from inferencecache.picker.pipeline.endpoint import EndpointView
from inferencecache.picker.pipeline.produced import Produced
from inferencecache.picker.pipeline.request import Request
from inferencecache.picker.pipeline.response import Response
from inferencecache.picker.pipeline.scheduling import SchedulingResult, Scored

Keys = tuple[AttributeKey[Any], ...]


@runtime_checkable
class PreAdmitter(Protocol):
    """Runs first, before rules and candidates; may change the request."""

    def pre_admit(self, request: Request) -> None:
        """Set ``fairness_id``, ``headers`` or ``attributes`` of *request*.

        Raises:
            DeniedError: The request goes no further. Any other exception stops it as well.
        """
        ...


@runtime_checkable
class DataProducer(Protocol):
    """Finds something out; runs before Admitters and scheduling."""

    @property
    def produces(self) -> Keys:
        """Every key that :meth:`produce` may write."""
        ...

    async def produce(self, request: Request, endpoints: Sequence[EndpointView]) -> Produced:
        """Return what it found out; whatever comes after the timeout is not used."""
        ...


@runtime_checkable
class ImmediateProducer(Protocol):
    """A DataProducer that never waits; it is called in place, which spares the cost of a task."""

    def produce_now(self, request: Request, endpoints: Sequence[EndpointView]) -> Produced:
        """Return what :meth:`DataProducer.produce` would; no timeout can stop it."""
        ...


@runtime_checkable
class TimeoutAwareProducer(Protocol):
    """A DataProducer that knows how long it may take."""

    def produce_timeout_ns(self) -> int:
        """Return the limit in nanoseconds; 0 or less takes the default. Asked once, at start."""
        ...


@runtime_checkable
class Admitter(Protocol):
    """Says yes or no once the data is there; all of them must say yes."""

    def admit(self, request: Request, endpoints: Sequence[EndpointView]) -> None:
        """Return to say yes.

        Raises:
            DeniedError: No, and why.
        """
        ...


@runtime_checkable
class Filter(Protocol):
    """Leaves endpoints out, as a step of a scheduling profile."""

    def filter(self, request: Request, endpoints: Sequence[EndpointView]) -> Sequence[EndpointView]:
        """Return those that stay, in the same order."""
        ...


@runtime_checkable
class Scorer(Protocol):
    """Gives points, as a step of a scheduling profile."""

    def score(self, request: Request, endpoints: Sequence[EndpointView]) -> Sequence[float]:
        """Return a number from 0 to 1 for each endpoint, in their order; others are clamped.

        Raises:
            NoSignalError: It has nothing to go by.
        """
        ...


@runtime_checkable
class Picker(Protocol):
    """Puts what was scored in order, as the last step of a scheduling profile."""

    def pick(self, request: Request, scored: Sequence[Scored]) -> Sequence[Scored]:
        """Return *scored* in the order in which to try them, best first."""
        ...


@runtime_checkable
class ProfileHandler(Protocol):
    """Chooses the scheduling profile where the tier of a pool names none."""

    def profile(self, request: Request, names: Sequence[str]) -> str:
        """Return one of *names*, which come in the order of the configuration."""
        ...


@runtime_checkable
class PreRequest(Protocol):
    """Runs when an endpoint was chosen, before the caller learns of it."""

    def pre_request(self, request: Request, result: SchedulingResult) -> None:
        """Take note; an exception gives the request to the next best endpoint, once."""
        ...


@runtime_checkable
class ResponseHeaderProcessor(Protocol):
    """Learns that the destination has begun to answer."""

    def response_header(self, request: Request, response: Response, endpoint: EndpointView) -> None:
        """Take note."""
        ...


@runtime_checkable
class ResponseBodyProcessor(Protocol):
    """Learns of the first token and of the end; the end comes exactly once per PreRequest."""

    def response_body(self, request: Request, response: Response, endpoint: EndpointView) -> None:
        """Take note; ``response.end_of_stream`` is the last call."""
        ...
