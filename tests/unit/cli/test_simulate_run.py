"""Where a simulation's result goes, what is shown meanwhile, and what happens if it cannot go."""

from io import StringIO
from pathlib import Path

import pytest
from replay_traces import hand_trace
from rich.console import Console

from inferencecache.cli.replay_output import Output
from inferencecache.cli.simulate_progress import SimulateProgress
from inferencecache.cli.simulate_run import DONE, OUTPUT_LOST, run
from inferencecache.errors import ConfigError
from inferencecache.settings.simulate import SimulateCommandSettings, SimulateSettings

SETTINGS = SimulateCommandSettings(
    simulate=SimulateSettings(engines=2, strategies="round-robin,estimated-ttft")
)


class FullDisk(StringIO):
    """Takes nothing."""

    def flush(self) -> None:
        """Fail as a full disk does."""
        raise OSError(28, "No space left on device")


def test_result_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says why, and the exit code tells it apart from wrong usage."""
    monkeypatch.setattr("sys.stdout", FullDisk())
    output = Output(trace=hand_trace(tmp_path / "t.jsonl"), as_json=True, plot=None)

    assert run(output, SETTINGS) == OUTPUT_LOST
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith("cannot write the result: No space left on device")


def test_plot_over_a_directory_is_refused_after_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What only shows when the file is opened is still one clear error, and costs no table."""
    target = tmp_path / "plot.svg"
    target.mkdir()
    output = Output(trace=hand_trace(tmp_path / "t.jsonl"), as_json=False, plot=target)

    with pytest.raises(ConfigError, match=r"--plot.*a writable file"):
        run(output, SETTINGS)

    assert "estimated-ttft" in capsys.readouterr().out


def test_plot_of_a_part_of_the_strategies(tmp_path: Path) -> None:
    """Two strategies are drawn as well as six."""
    target = tmp_path / "plot.svg"
    output = Output(trace=hand_trace(tmp_path / "t.jsonl"), as_json=False, plot=target)

    assert run(output, SETTINGS) == DONE
    assert "estimated-ttft" in target.read_text()


def watch(console: Console) -> None:
    """Place two requests with each of two strategies under a progress line."""
    with SimulateProgress(console, 2) as progress:
        for strategy in ("one-way", "another"):
            for _ in range(2):
                progress.offered(strategy)


def test_terminal_sees_how_far_which_strategy_is() -> None:
    """The line counts requests and starts anew with each strategy."""
    drawn = StringIO()
    watch(Console(file=drawn, force_terminal=True, width=100, legacy_windows=False))

    assert "2/2" in drawn.getvalue()
    assert "another" in drawn.getvalue()


def test_file_gets_no_progress() -> None:
    """A log is not filled with a moving line."""
    written = StringIO()
    watch(Console(file=written))

    assert written.getvalue() == ""
