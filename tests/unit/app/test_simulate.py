"""Simulations with the real picker: what is never to happen, and what always is the same."""

import asyncio
from dataclasses import replace
from random import Random

import pytest
from simulated import played, simulated, workload

from inferencecache.app.simulate import STRATEGIES, chosen_strategies, parameters_of
from inferencecache.app.simulate_picker import PickError, in_place
from inferencecache.clock import NS_PER_S
from inferencecache.errors import ConfigError
from inferencecache.picker.choice import Outcome, Refusal
from inferencecache.settings.simulate import SimulateCommandSettings, SimulateSettings
from inferencecache.simulation import TraceRequest, trace_workload


def test_the_same_seed_gives_the_same_numbers_and_another_one_others() -> None:
    """Exploration and ties are drawn, too."""
    settings = SimulateSettings(requests=150, engines=4)

    first, second, other = (
        [
            (each.name, each.ttft_curve_ms, each.requests_by_engine)
            for each in simulated("sessions", chosen).strategies
        ]
        for chosen in (settings, settings, SimulateSettings(requests=150, engines=4, seed=1))
    )

    assert first == second
    assert first != other


def test_strategies_come_in_the_order_of_the_table() -> None:
    """However they are named; a name that nobody has is refused with those there are."""
    assert chosen_strategies("all") == list(STRATEGIES)
    assert chosen_strategies("estimated-ttft, round-robin") == ["round-robin", "estimated-ttft"]
    with pytest.raises(ConfigError, match=r"--strategies.*fastest.*predicted-ttft"):
        chosen_strategies("round-robin,fastest")
    with pytest.raises(ConfigError, match="--strategies"):
        chosen_strategies("")


@pytest.mark.parametrize(
    ("traffic", "own", "foreign"),
    [
        ("trace", "sticky-min-share", "session-turns"),
        ("sessions", "session-turns", "cold-prompt-tokens"),
        ("cold", "cold-prompt-tokens", "session-turns"),
    ],
)
def test_parameters_are_those_that_count(traffic: str, own: str, foreign: str) -> None:
    """What the numbers depend on is said, and nothing besides."""
    settings = SimulateSettings(traffic=traffic, requests=5)
    command = SimulateCommandSettings(simulate=settings)

    parameters = parameters_of(workload("cold", settings), command)

    assert parameters["requests"] == "5"
    assert parameters["base-ttft"] == "50ms"
    assert own in parameters
    assert foreign not in parameters


def test_a_pick_that_waits_is_an_error() -> None:
    """A table that depends on the machine would be worth nothing."""

    async def waits() -> Refusal:
        await asyncio.sleep(0)
        return Refusal(outcome=Outcome.NO_WORKERS, reason="")

    async def answers() -> Refusal:
        return Refusal(outcome=Outcome.NO_WORKERS, reason="at once")

    assert in_place(1, answers()).reason == "at once"
    with pytest.raises(PickError, match=r"request 7: .*waits"):
        in_place(7, waits())


def test_the_longest_prompt_of_a_trace_is_matched_in_one_go() -> None:
    """More blocks than a server would look up without giving way to others."""
    ids = tuple(range(5_000))
    request = TraceRequest(
        timestamp_ms=0, input_length=512 * len(ids) + 1, output_length=1, hash_ids=(*ids, 0)
    )
    (first,) = trace_workload([request], 1.0, Random(0))
    second = replace(first, number=1, arrival_ns=1_000 * NS_PER_S)
    settings = SimulateSettings(strategies="estimated-ttft", cache_blocks=10_000)

    summary = played([first, second], settings)

    assert summary.of("estimated-ttft").hit_ratio == pytest.approx(0.5, abs=1e-3)
