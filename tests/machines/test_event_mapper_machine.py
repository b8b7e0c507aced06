"""A producer agrees with its engine after any life, and never claims what it did not announce."""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from producer_machine import ProducerMachine

EXAMPLES = {"dev": 50, "ci": 1_000}
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")


@pytest.mark.timeout(900)
def test_producer_follows_its_engine() -> None:
    """Losses, replays, duplicates, restarts and outages end in agreement."""
    run_state_machine_as_test(
        ProducerMachine,
        settings=settings(
            max_examples=EXAMPLES[PROFILE],
            stateful_step_count=40,
            deadline=None,
            derandomize=PROFILE == "ci",
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
