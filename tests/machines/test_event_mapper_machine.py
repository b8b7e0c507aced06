"""A producer agrees with its engine after any life, and never claims what it did not announce."""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from orphan_machine import OrphanMachine
from producer_machine import ProducerMachine

EXAMPLES = {"dev": 50, "ci": 1_000}
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")


def run(machine: type[RuleBasedStateMachine]) -> None:
    """Run as many lives as the profile says."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES[PROFILE],
            stateful_step_count=40,
            deadline=None,
            derandomize=PROFILE == "ci",
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


@pytest.mark.timeout(900)
def test_producer_follows_its_engine() -> None:
    """Losses, replays, duplicates, restarts and outages end in agreement."""
    run(ProducerMachine)


@pytest.mark.timeout(900)
def test_stores_in_any_order_are_placed_once_or_given_up() -> None:
    """Children before parents, circles, repeated labels and unknown parents harm nobody."""
    run(OrphanMachine)
