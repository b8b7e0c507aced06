"""Deny requests during quiet hours, but for the teams that are on call."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Final

from msgspec import Meta

from inferencecache.picker.pipeline import (
    DeniedError,
    EndpointView,
    PluginParameters,
    PluginServices,
    PluginType,
    Request,
)

_NS_PER_S: Final = 1_000_000_000

Hour = Annotated[int, Meta(ge=0, le=24)]


class QuietHoursParameters(PluginParameters, frozen=True):
    """What the configuration may say.

    Attributes:
        team_header: The header that names the team, in any case.
        from_hour: First quiet hour, UTC.
        until_hour: First hour behind them.
        on_call: Teams that are always served.
    """

    team_header: Annotated[str, Meta(min_length=1)] = "x-acme-team"
    from_hour: Hour = 22
    until_hour: Hour = 24
    on_call: tuple[str, ...] = ()


class QuietHours:
    """A PreAdmitter, which names the team, and an Admitter, which asks for the time."""

    def __init__(self, parameters: QuietHoursParameters, services: PluginServices) -> None:
        if parameters.from_hour > parameters.until_hour:
            raise ValueError("fromHour up to untilHour, both of one day")
        self._parameters = parameters
        self._clock = services.clock

    def pre_admit(self, request: Request) -> None:
        """Let the request count against its team instead of its tenant."""
        team = request.headers.get(self._parameters.team_header.lower(), "")
        if team:
            request.fairness_id = team

    def admit(self, request: Request, _endpoints: Sequence[EndpointView]) -> None:
        """Deny the request if it is quiet and its team is not on call."""
        hour = datetime.fromtimestamp(self._clock.now_ns() / _NS_PER_S, tz=UTC).hour
        is_quiet = self._parameters.from_hour <= hour < self._parameters.until_hour
        if is_quiet and request.fairness_id not in self._parameters.on_call:
            raise DeniedError("quiet hours")


QUIET_HOURS: Final = PluginType(
    name="acme-quiet-hours", parameters=QuietHoursParameters, make=QuietHours
)
