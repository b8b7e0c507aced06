"""Laws of what is claimed of a worker: bounded by the prompt, never less for holding more."""

from dataclasses import replace

from fleets import question, row, worker_set
from hypothesis import given
from hypothesis import strategies as st
from prefix_rig import PrefixRig, exact, finish, matched, tokens

from inferencecache.clock import NS_PER_S
from inferencecache.types import CacheTier

A = "a:1"
SET = replace(worker_set("w", row("m"), addresses=[A, "b:1"]), block_size_tokens=16)
ASKED = question(tenant="t")
LENGTH = 1_000

lengths = st.integers(0, 2 * LENGTH)
tiers = st.sampled_from([CacheTier.T1, CacheTier.T2, CacheTier.T3])
reports = st.lists(st.tuples(lengths, st.integers(0, LENGTH)), max_size=6)


def rig_with(history: list[tuple[int, int]]) -> PrefixRig:
    """Return a signal that has seen claims come true, or not."""
    rig = PrefixRig(SET)
    rig.report("b:1", tokens(64, first=10**9))
    for number, (claimed, cached) in enumerate(history, start=1):
        prompt = tokens(2 * LENGTH, first=number * 10_000)
        rig.report(A, prompt[:claimed])
        rig.reader.answer = exact(prompt)
        finish(rig.place(ASKED, A), cached)
        rig.clock.advance_ns(10 * NS_PER_S)
    rig.reader.answer = exact(tokens(LENGTH))
    return rig


@given(reports, lengths, tiers, lengths)
def test_a_match_is_less_than_the_prompt_and_never_negative(
    history: list[tuple[int, int]], held: int, tier: CacheTier, sent: int
) -> None:
    """Whatever the index claims, was sent there, and was learnt of it."""
    rig = rig_with(history)
    rig.report(A, tokens(held), tier=tier)
    rig.reader.answer = exact(tokens(sent))
    rig.place(ASKED, A)
    rig.reader.answer = exact(tokens(LENGTH))
    found = matched(rig.sense(ASKED).matches)
    assert all(0 < count < LENGTH for count in found.values())
    assert found.get(A, 0) <= max(min(held, LENGTH), min(sent, LENGTH))
    trusts = [trust for _, _, trust in rig.knowledge.audit.trusts()]
    assert all(0.0 <= trust <= 1.0 for trust in trusts)


@given(reports, lengths, lengths)
def test_who_holds_more_is_never_said_to_have_less(
    history: list[tuple[int, int]], first: int, second: int
) -> None:
    """Two workers of the same history."""
    less, more = sorted((first, second))
    counts = []
    for held in (less, more):
        rig = rig_with(history)
        rig.report(A, tokens(held))
        counts.append(rig.tokens_of(ASKED).get(A, 0))
    assert counts[0] <= counts[1]
