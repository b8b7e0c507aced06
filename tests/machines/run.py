"""Drive the index state machines for as long as asked, with a fresh seed each round.

``python tests/machines/run.py --seconds 3600 [--seed 1]``; a failure prints the seed to repeat.
"""

import argparse
import random
import sys
import time
from itertools import count
from pathlib import Path

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "models")]

from index_machine import MACHINES  # noqa: E402 - a script finds its neighbours itself

EXAMPLES_PER_ROUND = 25


def arguments() -> argparse.Namespace:
    """Return how long to run and from which seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    return parser.parse_args()


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def run_round(machine: type[RuleBasedStateMachine], number: int) -> None:
    """Run one machine on the examples of one seed."""
    run_state_machine_as_test(
        seed(number)(type(machine.__name__, (machine,), {})),
        settings=settings(
            max_examples=EXAMPLES_PER_ROUND,
            stateful_step_count=50,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


def main() -> int:
    """Run rounds until the time is up or one fails."""
    options = arguments()
    examples = 0
    end = time.monotonic() + options.seconds
    rounds = ((number, machine) for number in count(options.seed) for machine in MACHINES)
    for number, machine in rounds:
        if time.monotonic() >= end:
            break
        try:
            run_round(machine, number)
        except Exception:
            say(f"{machine.__name__} failed; repeat with --seed {number}")
            raise
        examples += EXAMPLES_PER_ROUND
        say(f"{examples} examples passed, {machine.__name__} with seed {number}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
