"""The progress line of a replay."""

from io import StringIO

from rich.console import Console

from inferencecache.cli.replay_progress import ReplayProgress
from inferencecache.settings.replay import ReplaySettings
from inferencecache.simulation import Answer, Experiment, TraceRequest, prompt_of

PROMPT = prompt_of(TraceRequest(timestamp_ms=0, input_length=512, output_length=1, hash_ids=(1,)))
NO_HINT = Answer(reason_code="NO_HINT", hinted_tokens={}, latency_ns=1)


def watch(console: Console) -> None:
    """Play two equal prompts on one replica under a progress line."""
    experiment = Experiment(ReplaySettings(replicas=1), 2)
    with ReplayProgress(console, 2) as progress:
        for done in (1, 2):
            experiment.play(PROMPT, NO_HINT)
            progress.played(experiment, done)


def test_terminal_sees_how_the_strategies_stand() -> None:
    """The line counts requests and shows both ratios."""
    drawn = StringIO()
    watch(Console(file=drawn, force_terminal=True, width=100, legacy_windows=False))

    assert "2/2" in drawn.getvalue()
    assert "cache-aware 50.0%" in drawn.getvalue()


def test_file_gets_no_progress() -> None:
    """A log is not filled with a moving line."""
    written = StringIO()
    watch(Console(file=written))

    assert written.getvalue() == ""


def test_only_an_own_server_is_announced() -> None:
    """Whoever names a server knows it; one started here lets everybody in, which is said."""
    written = StringIO()
    progress = ReplayProgress(Console(file=written, width=40), 1)
    progress.started("cache:9090", is_own_server=False)
    progress.started("127.0.0.1:5", is_own_server=True)

    assert written.getvalue().count("\n") == 1
    assert "127.0.0.1:5" in written.getvalue()
    assert "authentication is off" in written.getvalue()
