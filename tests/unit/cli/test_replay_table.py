"""What a replay comes to, in one sentence."""

import pytest

from inferencecache.cli.replay_table import verdict
from inferencecache.settings.replay import ReplaySettings
from inferencecache.simulation import Answer, Experiment, Prompt, TraceRequest, prompt_of


def prompt(*ids: int) -> Prompt:
    """Return a prompt of full blocks."""
    request = TraceRequest(
        timestamp_ms=0, input_length=512 * len(ids), output_length=1, hash_ids=ids
    )
    return prompt_of(request)


def told(prompts: list[Prompt], hints: dict[int, int]) -> str:
    """Return the sentence about two replicas, of which the hinted one gets everything."""
    settings = ReplaySettings(replicas=2, overload_factor=0.0, match_share_min=0.0)
    experiment = Experiment(settings, len(prompts))
    for one in prompts:
        experiment.play(one, Answer(reason_code="PREFIX_MATCH", hinted_tokens=hints, latency_ns=1))
    return verdict(experiment.summary("t", ["a", "b"], 1))


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
