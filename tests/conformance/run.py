"""Play scenario files against the real service layer.

``python tests/conformance/run.py FILE...`` takes plain and gzipped files and ends with the line
``N passed, N failed``; the status is 1 if any failed. What cannot be read or played, be it a
file, a line or a step, is a failed scenario.
"""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "models")]

from plane_target import PlaneTarget  # noqa: E402 - a script finds its neighbours itself
from scenario_player import play_files  # noqa: E402 - the same


def main(arguments: list[str]) -> int:
    """Play the files, say what failed, and return the exit status."""
    if not arguments:
        sys.stderr.write(f"{__doc__}")
        return 2
    sys.stdout.reconfigure(errors="backslashreplace")
    report = play_files(map(Path, arguments), PlaneTarget)
    for failure in report.failures:
        sys.stdout.write(f"{failure}\n")
    sys.stdout.write(f"{report.passed} passed, {len(report.failures)} failed\n")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
