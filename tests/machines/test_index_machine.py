"""The index does what the oracle does, whatever is done to it in whatever order."""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from index_machine import MACHINES

EXAMPLES = {"dev": 50, "ci": 1_000}
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.__name__)
def test_index_equals_its_oracle(machine: type[RuleBasedStateMachine]) -> None:
    """No sequence of operations tells the index from the oracle."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES[PROFILE],
            stateful_step_count=25,
            derandomize=PROFILE == "ci",
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
