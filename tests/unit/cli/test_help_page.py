"""Help pages can be read: every name and variable whole, at any usual width of the terminal."""

import re

import pytest
import typer

from inferencecache.cli.help_page import WIDTH_MAX
from inferencecache.cli.program import build, run

WIDTHS = (60, 80, 120)
COMMANDS = tuple(typer.main.get_command(build()).commands)


def page(
    arguments: list[str],
    width: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    """Return the help page of *arguments* on a terminal of *width*."""
    monkeypatch.setenv("COLUMNS", str(width))
    assert run([*arguments, "--help"]) == 0
    return capsys.readouterr().out


def declared(command: str) -> list[typer.core.TyperOption]:
    """Return the options of *command* that its help shows."""
    parameters = typer.main.get_command(build()).commands[command].params
    return [one for one in parameters if isinstance(one, typer.core.TyperOption) and not one.hidden]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_whole(
    command: str,
    width: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Name and value stand on one line, the text and the variable below it, nothing is cut."""
    lines = page([command], width, monkeypatch, capsys).splitlines()
    entries = re.split(r"\n(?=  -)", "\n".join(lines))

    assert max(map(len, lines)) <= min(width, WIDTH_MAX)
    for option in declared(command):
        head = " ".join([", ".join(option.opts), "" if option.is_flag else option.metavar]).strip()
        (entry,) = [one for one in entries if f"  {head}" in one.splitlines()[0]]
        told = " ".join(entry.split("\n\n")[0].split())
        for word in option.help.replace("\N{NO-BREAK SPACE}", " ").split():
            assert word in told
        for variable in re.findall(r"INFERENCECACHE_\w+", option.help):
            assert re.search(rf"env\s+{variable}\)", entry)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_command_has_its_summary(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program's own page says in full what each command does."""
    text = page([], width, monkeypatch, capsys)

    assert max(map(len, text.splitlines())) <= min(width, WIDTH_MAX)
    told = " ".join(text.split())
    for name, command in typer.main.get_command(build()).commands.items():
        summary = " ".join(command.help.split("\n\n")[0].split())
        assert f" {name} {summary} " in told


def test_page_says_what_values_look_like(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page with durations shows one; a page without any does not speak of them."""
    assert "1h30m" in page(["serve"], 80, monkeypatch, capsys)
    assert "1h30m" not in page(["crds"], 80, monkeypatch, capsys)


def test_terminal_too_narrow_for_anything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names stay whole even where they cannot fit."""
    lines = page(["serve"], 1, monkeypatch, capsys).splitlines()

    assert "  --max-concurrent-tokenizations" in lines
