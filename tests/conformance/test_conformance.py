"""Every scenario file comes out as the contract says."""

from pathlib import Path

import pytest
from plane_target import PlaneTarget
from scenario_player import play_files

FILES = sorted(Path(__file__).parent.glob("data/**/*.jsonl*"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_scenarios_come_out_as_wanted(path: Path) -> None:
    """Each step of each scenario gives the wanted answer."""
    report = play_files([path], PlaneTarget)

    assert not report.failures, "\n".join(map(str, report.failures))
    assert report.passed
