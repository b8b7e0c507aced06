"""The plugins alone, and in a pipeline that a configuration makes."""

import asyncio
from random import Random

import pytest
from acme_picker_plugins.green_energy import CLEAN_SHARE, GREEN_ENERGY, GreenEnergyParameters
from acme_picker_plugins.quiet_hours import QUIET_HOURS, QuietHoursParameters

from inferencecache.clock import ManualClock
from inferencecache.picker.bodies import Rope
from inferencecache.picker.choice import Question
from inferencecache.picker.pipeline import DeniedError, PluginServices, Request
from inferencecache.picker.pipeline.attributes import WritableAttributes
from inferencecache.picker.request import Api, InferenceRequest

HOUR_NS = 3_600_000_000_000


def services(hour: int) -> PluginServices:
    """Return what plugins may use, at an hour of the first day of 1970."""
    return PluginServices(clock=ManualClock(hour * HOUR_NS), draw=Random(1).random)


def request(**headers: str) -> Request:
    """Return a request with *headers*."""
    parsed = InferenceRequest(
        api=Api.CHAT_COMPLETIONS, model="chat", model_names=("chat",), model_spans=()
    )
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    question = Question(request=parsed, content=Rope(), tenant="acme", headers=names)
    return Request(1, question, WritableAttributes(8), bytes_per_token=4)


@pytest.mark.parametrize("hour", [22, 23])
def test_quiet_hours_are_quiet(hour: int) -> None:
    """From the first of them to the last."""
    plugin = QUIET_HOURS.make(QuietHoursParameters(), services(hour))
    with pytest.raises(DeniedError, match="quiet hours"):
        plugin.admit(request(), [])


@pytest.mark.parametrize("hour", [21, 0])
def test_other_hours_are_not(hour: int) -> None:
    """Nobody is denied anything."""
    plugin = QUIET_HOURS.make(QuietHoursParameters(), services(hour))
    plugin.admit(request(), [])


def test_a_team_on_call_is_served() -> None:
    """The header names it, and the request counts against it."""
    parameters = QuietHoursParameters(from_hour=0, until_hour=24, on_call=("support",))
    plugin = QUIET_HOURS.make(parameters, services(12))
    asked = request(x_acme_team="support")
    plugin.pre_admit(asked)
    plugin.admit(asked, [])
    assert asked.fairness_id == "support"


def test_hours_must_be_of_one_day() -> None:
    """The server does not start with such a configuration."""
    with pytest.raises(ValueError, match="both of one day"):
        QUIET_HOURS.make(QuietHoursParameters(from_hour=22, until_hour=6), services(0))


def test_green_energy_says_nothing_without_endpoints() -> None:
    """It names its limit, and the key it writes."""
    plugin = GREEN_ENERGY.make(GreenEnergyParameters(timeout_ms=5), services(0))
    produced = asyncio.run(plugin.produce(request(), []))
    assert not produced.about_endpoints
    assert plugin.produce_timeout_ns() == 5_000_000
    assert plugin.produces == (CLEAN_SHARE,)
