"""Raw matches for the picker: as packed, as matched, as cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from picker_texts import result_of
from prefix_rig import PrefixRig, exact, tokens

from inferencecache.fingerprint import chain
from inferencecache.index import StateUpdate
from inferencecache.index.packing import pack
from inferencecache.picker.prefix.block_keys import CacheDomain
from inferencecache.picker.prefix.index_source import IndexMatch, IndexQuestion
from inferencecache.service.index_matches import IndexMatches, packed
from inferencecache.settings.lookup import LookupSettings

DOMAIN = CacheDomain("t", "m", "vllm", "")


def question(token_ids: list[int], block_tokens: int = 16) -> IndexQuestion:
    """Return a question about a prompt."""
    blocks = exact(token_ids, block_tokens=block_tokens)
    return IndexQuestion(
        domain=DOMAIN, hashes=blocks.hashes, block_tokens=block_tokens, deadline_ns=2**62
    )


@given(st.lists(st.binary(min_size=8, max_size=8)))
def test_hashes_are_packed_as_the_index_packs_them(hashes: list[bytes]) -> None:
    """Byte by byte, so that a match is a comparison."""
    found = packed(b"".join(hashes))
    assert bytes(found.packed) == (pack(hashes, 8) if hashes else b"")
    assert list(found) == hashes


@pytest.mark.parametrize("slice_blocks", [1, 3, 2_048])
def test_slices_come_to_the_same(slice_blocks: int) -> None:
    """However long they are."""
    rig = PrefixRig()
    rig.report("a", tokens(640))
    rig.report("b", tokens(100))
    settings = LookupSettings(match_slice_blocks=slice_blocks)
    matches = IndexMatches(rig.plane.index, rig.clock, settings)
    expected = {"a": IndexMatch(640, 1), "b": IndexMatch(96, 1)}
    assert dict(result_of(matches.steps(question(tokens(640)))).matches) == expected
    at_once = matches.at_once(question(tokens(640)))
    assert (at_once is None) == (slice_blocks < 40)
    assert at_once is None or dict(at_once.matches) == expected


def test_large_blocks_have_their_size() -> None:
    """More tokens than a byte can count."""
    rig = PrefixRig()
    hashes = chain(tokens(4_096), 1_024)
    update = StateUpdate(tenant_id="t", model_id="m", replica_id="a", hash_scheme="vllm")
    update.add_chain(hashes, [1_024] * 4)
    update.close()
    rig.plane.report(update)
    found = IndexMatches(rig.plane.index, rig.clock, LookupSettings()).at_once(
        question(tokens(4_096), block_tokens=1_024)
    )
    assert found is not None
    assert dict(found.matches) == {"a": IndexMatch(4_096, 1)}


def test_the_end_of_a_chain_that_is_too_long_is_ignored() -> None:
    """As it is for lookups."""
    rig = PrefixRig()
    rig.report("a", tokens(640))
    settings = LookupSettings(chain_blocks_max=10)
    found = IndexMatches(rig.plane.index, rig.clock, settings).at_once(question(tokens(640)))
    assert found is not None
    assert dict(found.matches) == {"a": IndexMatch(160, 1)}


def test_questions_in_turn_are_answered_each_by_its_own_hashes() -> None:
    """The same object again, an equal one, and another in between."""
    rig = PrefixRig()
    rig.report("a", tokens(640))
    matches = IndexMatches(rig.plane.index, rig.clock, LookupSettings())
    long, short = question(tokens(640)), question(tokens(320))
    for asked in (long, long, short, question(tokens(640)), short, short, long):
        found = matches.at_once(asked)
        assert found is not None
        held = len(asked.hashes) // 8 * 16
        assert dict(found.matches) == {"a": IndexMatch(held, 1)}
