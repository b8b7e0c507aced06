"""Worker sets whose tokenizers differ: each counts the prompt for itself."""

from dataclasses import replace

import pytest
from fleets import question, row, worker_set
from prefix_rig import PrefixRig, exact, matched, tokens

from inferencecache.picker.fleet import PrefixUse

A, B, C = "10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000"
ONE = replace(worker_set("one", row("m"), addresses=[A, B]), block_size_tokens=16)
OTHER = replace(worker_set("other", row("n"), addresses=[C]), block_size_tokens=16)
ASKED = question(tenant="t")


def test_each_set_counts_the_prompt_by_its_own_tokenizer() -> None:
    """The longest stands for whom nobody counts at."""
    rig = PrefixRig(ONE, OTHER)
    rig.reader.by_set["other"] = exact(tokens(1_000))
    found = rig.sense(ASKED)
    assert found.prompt_tokens == 1_000
    assert found.lengths == {A: 640, B: 640, C: 1_000}


def test_nothing_is_said_of_sets_that_count_alike() -> None:
    """Other tokens, but as many of them."""
    rig = PrefixRig(ONE, OTHER)
    rig.reader.by_set["other"] = exact(tokens(640, first=7))
    found = rig.sense(ASKED)
    assert (found.prompt_tokens, found.lengths) == (640, {})


def test_who_counts_nothing_has_no_length() -> None:
    """Blocks of characters are no count."""
    found = PrefixRig(replace(ONE, prefix=PrefixUse.APPROXIMATE)).sense(ASKED)
    assert (found.prompt_tokens, found.lengths) == (None, {})


@pytest.mark.parametrize("reversed_order", [False, True])
def test_who_counts_nothing_has_its_share_of_what_others_count(*, reversed_order: bool) -> None:
    """576 of 640 tokens, as it believes: nine tenths of the 1,000 that an engine counts."""
    blind = replace(OTHER, prefix=PrefixUse.APPROXIMATE)
    rig = PrefixRig(*([blind, ONE] if reversed_order else [ONE, blind]))
    rig.reader.by_set["one"] = exact(tokens(1_000))
    rig.reader.characters_answer = replace(exact(tokens(640), block_tokens=64), is_exact=False)
    rig.place(ASKED, C)
    rig.reader.characters_answer = replace(
        exact([*tokens(576), *tokens(64, first=9_000)], block_tokens=64), is_exact=False
    )
    found = rig.sense(ASKED)
    assert found.prompt_tokens == 1_000
    assert matched(found.matches) == {C: 900}
    assert found.lengths == {}
