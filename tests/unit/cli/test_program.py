"""The command line: help, version, and one clear line for everything that is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import inferencecache
from inferencecache import __version__
from inferencecache.cli.program import COMMANDS, run
from inferencecache.settings.knob import knobs_of
from inferencecache.settings.loader import groups_of
from inferencecache.settings.server import ServerSettings


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep help text from being wrapped."""
    monkeypatch.setenv("COLUMNS", "300")


def error_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the only line on standard error of a run that must exit with 2."""
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """``--version`` prints name and version and succeeds."""
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"inferencecache {__version__}\n"


def test_help_names_every_setting_with_default_and_variable(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``serve --help`` is complete."""
    assert run(["serve", "--help"]) == 0
    page = capsys.readouterr().out
    for _, group in groups_of(ServerSettings):
        for knob in knobs_of(group):
            assert f"--{knob.flag} " in page
            assert f"env {knob.env})" in page


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """``--help`` shows one line per command."""
    assert run(["--help"]) == 0
    page = capsys.readouterr().out
    for module in COMMANDS:
        assert module.__name__.rsplit(".", 1)[-1].replace("_", "-") in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "--ttl", "5"], ["--ttl", "'5'", "from flag", "duration"]),
        (["serve", "--engine-block-size=0"], ["--engine-block-size", "'0'", "at least 1"]),
        (["serve", "--engine-block-size=-1"], ["--engine-block-size", "'-1'", "at least 1"]),
        (["serve", "--log-format", "yaml"], ["--log-format", "json, text"]),
        (["serve", "--grpc-bind-address", "x"], ["--grpc-bind-address", ":9090"]),
        (["serve", "--config", "/absent.yaml"], ["--config", "/absent.yaml", "readable"]),
        (["serve", "--ttl"], ["--ttl"]),
        (["serve", "--no-such-flag"], ["--no-such-flag", "`inferencecache serve --help`"]),
        (["serve", "surplus"], ["surplus", "`inferencecache serve --help`"]),
        (["no-such-command"], ["no-such-command", "`inferencecache --help`"]),
        (["srve"], ["srve", "Did you mean 'serve'?"]),
        (["--no-such-flag"], ["--no-such-flag", "`inferencecache --help`"]),
    ],
)
def test_wrong_usage_exits_2_with_one_line(
    arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The line says which flag, which value and what is allowed."""
    line = error_line(arguments, capsys)
    assert line.startswith("inferencecache: error: ")
    assert all(word in line for word in words)


def test_a_wrong_file_exits_2_and_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line names file, key and what is allowed."""
    path = tmp_path / "server.yaml"
    path.write_text("engine-block-size: 0\n")
    line = error_line(["serve", "--config", str(path)], capsys)
    assert all(word in line for word in ("engine-block-size", "0", str(path), "at least 1"))


def test_a_wrong_variable_exits_2_and_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line names the variable."""
    monkeypatch.setenv("INFERENCECACHE_LOG_LEVEL", "loud")
    assert "INFERENCECACHE_LOG_LEVEL: 'loud'" in error_line(["serve"], capsys)


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Called with nothing, the program explains itself, and a script notices that nothing ran."""
    assert run(["--help"]) == 0
    page = capsys.readouterr().out
    assert run([]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (page, "")
    assert "Start here" in page


def test_module_runs_like_the_command() -> None:
    """``python -m inferencecache`` is the command under the same name."""
    finished = subprocess.run(
        [sys.executable, "-m", "inferencecache", "no-such-command"],
        env={**os.environ, "PYTHONPATH": str(Path(inferencecache.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 2
    assert finished.stderr.startswith("inferencecache: error: No such command 'no-such-command'")
    assert finished.stderr.count("\n") == 1


def test_help_does_not_load_the_server() -> None:
    """Asking for help is quick: nothing heavy is imported before a command runs."""
    script = (
        "import sys; from inferencecache.cli.program import run; run(['serve', '--help']); "
        "heavy = {'grpc', 'aiohttp', 'uvloop', 'matplotlib', 'prometheus_client', 'google'}; "
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    home = str(Path(inferencecache.__file__).parents[1])
    finished = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": home},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (finished.stderr, finished.returncode) == ("", 0)
