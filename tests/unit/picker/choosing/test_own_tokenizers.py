"""Worker sets whose tokenizers differ: each is looked at by its own count of the prompt."""

import pytest
from fleets import ChooserRig, fleet, question, row, tier, tokens_of, worker_set
from known_prefixes import KnownPrefixes

from inferencecache.picker.fleet import ContextOverflow

FEW = worker_set("few", row("few", "m", window=4_000), addresses=["few:1"])
MANY = worker_set("many", row("many", "m", window=4_000), addresses=["many:1"])
ASKED = question(output_tokens=100)


def rig(
    few: int, many: int, matched: int = 0, overflow: ContextOverflow = ContextOverflow.LARGEST
) -> ChooserRig:
    """Return a chooser for a prompt that has so many tokens at the one set and at the other."""
    prefix = KnownPrefixes(
        {"few:1": matched} if matched else {},
        prompt_tokens=max(few, many),
        lengths={"few:1": few, "many:1": many},
    )
    return ChooserRig(fleet(tier("t", MANY, FEW), overflow=overflow), prefix=prefix)


@pytest.mark.parametrize("overflow", ContextOverflow)
def test_a_window_is_held_against_the_tokens_of_its_own_engine(overflow: ContextOverflow) -> None:
    """With 5,000 tokens at the one and 1,500 at the other it fits into 4,000 there, and exactly."""
    for few in (1_500, 3_900):
        choice = rig(few, 5_000, overflow=overflow).chosen(ASKED)
        assert choice.name == "few:1"
        assert "context" not in tokens_of(choice.reason)
        assert choice.explanation is not None
        barriers = {found.name: found.barrier for found in choice.explanation.candidates}
        assert barriers == {"few:1": "none", "many:1": "context"}


def test_what_fits_nowhere_is_refused() -> None:
    """One token above each window."""
    refusal = rig(3_901, 5_000, overflow=ContextOverflow.REJECT).refused(ASKED)
    assert refusal.reason == "context=exceeds"
    choice = rig(3_901, 5_000).chosen(ASKED)
    assert tokens_of(choice.reason)["context"] == "exceeds"


def test_estimates_are_made_of_own_tokens() -> None:
    """All but the last of 1,600: 50 ms and an eighth of one; 3,200 at the other: 450 ms."""
    choice = rig(1_600, 3_200, matched=1_599).chosen(ASKED)
    assert choice.name == "few:1"
    assert tokens_of(choice.reason)["matched"] == "1599/1600"
    assert choice.explanation is not None
    times = {found.name: found.estimated_ms for found in choice.explanation.candidates}
    assert times == {"few:1": 50.125, "many:1": 450.0}
    assert [found.score for found in choice.explanation.candidates] == [50.125, 450.0]
    assert [found.prompt_tokens for found in choice.explanation.candidates] == [1_600, 3_200]


def test_what_is_given_out_counts_in_own_tokens() -> None:
    """The next request meets 1,600 tokens there, not 3,200."""
    prefix = rig(1_600, 3_200)
    first, second = prefix.chosen(ASKED), prefix.chosen(ASKED)
    assert first.name == "few:1"
    assert second.explanation is not None
    queued = {found.name: found.queued_tokens for found in second.explanation.candidates}
    assert queued == {"few:1": 1_600, "many:1": 0}
