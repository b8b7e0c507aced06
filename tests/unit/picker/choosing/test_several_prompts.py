"""Of several prompts the first is compared with caches, and the longest is what is to be done."""

import pytest
from fleets import ChooserRig, fleet, question, row, tier, tokens_of, worker_set
from known_prefixes import KnownPrefixes

from inferencecache.picker.choice import Question
from inferencecache.picker.fleet import ContextOverflow
from inferencecache.picker.request import Api

WORKERS = worker_set("set", row("row", "m", window=4_000), addresses=["a:1", "b:1"])


def rig(first_tokens: int, matched: int = 0) -> ChooserRig:
    """Return a chooser whose signal counts the first prompt."""
    prefix = KnownPrefixes({"a:1": matched} if matched else {}, prompt_tokens=first_tokens)
    return ChooserRig(fleet(tier("t", WORKERS), overflow=ContextOverflow.REJECT), prefix=prefix)


def several(*, longest_tokens: int | None = None, longest_bytes: int | None = None) -> Question:
    """Return what asks about several prompts."""
    return question(
        api=Api.COMPLETIONS,
        prompt_tokens=longest_tokens,
        prompt_bytes=longest_bytes,
        has_several_prompts=True,
    )


@pytest.mark.parametrize(
    ("longest_tokens", "longest_bytes"), [(3_000, None), (None, 12_000), (7, 12_000), (3_000, 8)]
)
def test_the_longest_is_what_is_to_be_done(
    longest_tokens: int | None, longest_bytes: int | None
) -> None:
    """Not the 3 tokens of the first: whoever comes next meets all 3,000."""
    chooser = rig(3)
    asked = several(longest_tokens=longest_tokens, longest_bytes=longest_bytes)
    assert tokens_of(chooser.chosen(asked).reason)["matched"] == "0/3000"
    explanation = chooser.chosen(asked).explanation
    assert explanation is not None
    assert sorted(found.queued_tokens for found in explanation.candidates) == [0, 3_000]


def test_the_longest_has_to_fit() -> None:
    """Also where the first would, and nothing is refused because of an estimate of the first."""
    assert rig(3).refused(several(longest_tokens=4_001)).reason == "context=exceeds"
    assert rig(3).chosen(several(longest_tokens=4_000)).name


def test_what_is_warm_is_never_more_than_the_prompt() -> None:
    """The first may have more tokens than the others are believed to have."""
    choice = rig(100, matched=99).chosen(several(longest_bytes=40))
    assert tokens_of(choice.reason)["matched"] == "99/100"


def test_a_single_prompt_is_counted() -> None:
    """An estimate of 3,000 does not take the place of a count."""
    asked = question(api=Api.COMPLETIONS, prompt_bytes=12_000)
    assert tokens_of(rig(1_500).chosen(asked).reason)["matched"] == "0/1500"
