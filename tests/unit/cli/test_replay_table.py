"""What a replay comes to, in one sentence."""

import io

import pytest
from rich.console import Console

from inferencecache.cli.replay_table import print_summary, verdict
from inferencecache.settings.replay import ReplaySettings
from inferencecache.simulation import (
    Answer,
    Experiment,
    Prompt,
    ReplaySummary,
    TraceRequest,
    prompt_of,
)


def prompt(*ids: int) -> Prompt:
    """Return a prompt of full blocks."""
    request = TraceRequest(
        timestamp_ms=0, input_length=512 * len(ids), output_length=1, hash_ids=ids
    )
    return prompt_of(request)


def told(prompts: list[Prompt], hints: dict[int, int]) -> str:
    """Return the sentence about two replicas, of which the hinted one gets everything."""
    return verdict(replayed("t", prompts, hints))


def replayed(trace: str, prompts: list[Prompt], hints: dict[int, int]) -> ReplaySummary:
    """Return what came of two replicas, of which the hinted one gets everything."""
    settings = ReplaySettings(replicas=2, overload_factor=0.0, match_share_min=0.0)
    experiment = Experiment(settings, len(prompts))
    for one in prompts:
        experiment.play(one, Answer(reason_code="PREFIX_MATCH", hinted_tokens=hints, latency_ns=1))
    return experiment.summary(trace, ["a", "b"], 1)


@pytest.mark.parametrize(
    ("prompts", "sentence"),
    [
        (
            [prompt(1)] * 4,
            "Cache-aware routing found 1.5 x what round robin found, 100% of what there was.",
        ),
        (
            [prompt(1), prompt(1)],
            "Cache-aware routing found 100% of what there was; round robin found nothing.",
        ),
        (
            [prompt(1), prompt(2)],
            "No prompt begins like an earlier one, so there was nothing to find cached.",
        ),
    ],
)
def test_sentence(prompts: list[Prompt], sentence: str) -> None:
    """It compares with round robin and with what was possible, also where either is nothing."""
    assert told(prompts, {0: 512}) == sentence


@pytest.mark.parametrize("width", [80, 20])
def test_a_table_says_all_as_it_is(width: int) -> None:
    """Neither is the name of a trace markup, nor is a number cut where there is little room."""
    stream = io.StringIO()
    summary = replayed("[red]t[/]", [prompt(*range(20_000))] * 2, {0: 512})
    print_summary(summary, Console(file=stream, width=width, _environ={}))
    lines = [line.split() for line in stream.getvalue().splitlines()]
    assert lines[0][:1] == ["[red]t[/]:"]
    assert ["a", "2", "20,480,000", "1,024,000", "0.050"] in lines
