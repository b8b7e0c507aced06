"""``tox`` and ``.ci/run`` check the same things."""

import configparser
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_both_runners_run_the_same_checks() -> None:
    """Whichever of the two passes, the other one does."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    lint = tox["testenv:lint"]["commands"].split("\n")
    script = (ROOT / ".ci" / "run").read_text().splitlines()
    checks = [line.removeprefix("check ") for line in script if line.startswith("check ")]
    without_cache = [check.replace(' --cache-dir "$work/mypy"', "") for check in checks]
    assert [command for command in lint if command] == without_cache
    pytest_arguments = "-p no:cacheprovider -n 2"
    assert pytest_arguments in tox["testenv"]["commands"]
    assert any(pytest_arguments in line for line in script)
