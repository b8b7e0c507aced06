"""Where the command's result goes, and what happens when it cannot get there."""

from io import StringIO
from pathlib import Path

import pytest
from replay_traces import hand_trace

from inferencecache.cli.replay_output import Output
from inferencecache.cli.replay_run import DONE, OUTPUT_LOST, run
from inferencecache.errors import ConfigError
from inferencecache.settings.replay import ReplaySettings


class FullDisk(StringIO):
    """Takes nothing."""

    def flush(self) -> None:
        """Fail as a full disk does."""
        raise OSError(28, "No space left on device")


def test_result_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says why, and the exit code tells it apart from a lost server."""
    monkeypatch.setattr("sys.stdout", FullDisk())
    output = Output(trace=hand_trace(tmp_path / "t.jsonl"), as_json=True, plot=None)

    code = run(output, ReplaySettings())

    assert code == OUTPUT_LOST
    assert (
        capsys.readouterr()
        .err.splitlines()[-1]
        .endswith("cannot write the result: No space left on device")
    )


def test_plot_over_a_directory_is_refused(tmp_path: Path) -> None:
    """What only shows when the file is opened is still one clear error."""
    target = tmp_path / "plot.png"
    target.mkdir()
    output = Output(trace=hand_trace(tmp_path / "t.jsonl"), as_json=True, plot=target)

    with pytest.raises(ConfigError, match=r"--plot.*a writable file"):
        run(output, ReplaySettings())


def test_result_comes_before_the_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Table and plot can be had in one run."""
    target = tmp_path / "plot.svg"
    output = Output(trace=hand_trace(tmp_path / "t.jsonl"), as_json=False, plot=target)

    assert run(output, ReplaySettings()) == DONE
    assert "infinite cache" in capsys.readouterr().out
    assert target.stat().st_size > 1_000
