"""How much of a prompt each worker has: tiers, caps, what went where, and the larger of both."""

import asyncio
from collections import deque
from dataclasses import replace

import pytest
from fleets import question, row, worker_set
from prefix_rig import PrefixRig, abort, candidates_of, exact, finish, first, matched, tokens

from inferencecache.clock import NS_PER_MS, NS_PER_S, ManualClock
from inferencecache.picker.decisions import Ending
from inferencecache.picker.fleet import PrefixUse
from inferencecache.picker.prefix import PrefixSource
from inferencecache.picker.prompt.blocks import NoBlocks, PromptBlocks
from inferencecache.policy import CachePolicy, PolicySnapshot
from inferencecache.settings.lookup import LookupSettings
from inferencecache.settings.picker_prefix import PickerPrefixSettings
from inferencecache.types import CacheTier

A, B, C = "10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000"
SET = replace(worker_set("w", row("m"), addresses=[A, B, C]), block_size_tokens=16)
BLIND = replace(SET, prefix=PrefixUse.APPROXIMATE)
PROMPT = tokens(640)
ASKED = question(tenant="t")


def characters(count: int = 640) -> PromptBlocks:
    """Return blocks of characters."""
    return replace(exact(tokens(count), block_tokens=64), is_exact=False)


def test_the_index_says_how_much_each_has() -> None:
    """All of it is less than the prompt: the last token is always computed."""
    rig = PrefixRig(SET)
    rig.report(A, PROMPT)
    rig.report(B, PROMPT[:320])
    found = rig.sense(ASKED)
    assert matched(found.matches) == {A: 639, B: 320}
    assert {match.source for match in found.matches.values()} == {PrefixSource.PRECISE}
    assert found.prompt_tokens == 640


@pytest.mark.parametrize(
    ("tier", "tokens_matched"),
    [(CacheTier.UNSPECIFIED, 320), (CacheTier.T1, 320), (CacheTier.T2, 240), (CacheTier.T3, 80)],
)
def test_colder_tiers_count_less(tier: CacheTier, tokens_matched: int) -> None:
    """Host memory three quarters, storage one."""
    rig = PrefixRig(SET)
    rig.report(A, PROMPT[:320], tier=tier)
    assert rig.tokens_of(ASKED) == {A: tokens_matched}


@pytest.mark.parametrize("slice_blocks", [7, 2_048])
def test_each_token_counts_as_its_own_tier_does(slice_blocks: int) -> None:
    """So whoever has more never has less: what is behind a block makes it no colder."""
    rig = PrefixRig(SET, lookup=LookupSettings(match_slice_blocks=slice_blocks))
    rig.report(A, PROMPT[:480])
    rig.report(B, PROMPT[:480], tier=CacheTier.T3)
    rig.report(B, PROMPT[:320])
    rig.report(C, PROMPT[:480], tier=CacheTier.T3)
    rig.report(C, PROMPT[:320], tier=CacheTier.T2)
    rig.report(C, PROMPT[:160])
    assert rig.tokens_of(ASKED) == {A: 480, B: 320 + 40, C: 160 + 120 + 40}


def test_everybody_who_has_the_same_prefix_is_told_of() -> None:
    """What distinguishes nobody is still time that nobody need spend."""
    rig = PrefixRig(SET)
    for name in (A, B, C):
        rig.report(name, PROMPT[:160])
    assert rig.tokens_of(ASKED) == {A: 160, B: 160, C: 160}


def test_what_has_outlived_its_ttl_is_not_held() -> None:
    """Though nobody has swept it away yet."""
    rig = PrefixRig(SET)
    rig.report(A, PROMPT)
    rig.clock.advance_ns(30 * 60 * NS_PER_S + 1)
    assert rig.tokens_of(ASKED) == {}


def test_a_base_model_and_its_adapters_share_nothing() -> None:
    """The adapter is a partition of its base model."""
    adapter = replace(SET, models=(row("tuned", adapter_of="m"),))
    rig = PrefixRig(adapter)
    rig.report(A, PROMPT)
    rig.report(B, PROMPT[:320], adapter_id="tuned")
    assert rig.tokens_of(ASKED) == {B: 320}


def test_a_set_may_name_the_tenant_of_its_partitions() -> None:
    """Then whoever asks shares it."""
    shared = replace(SET, index_tenant="pool")
    rig = PrefixRig(shared)
    rig.report(A, PROMPT[:320], tenant_id="pool")
    assert rig.tokens_of(question(tenant="x")) == rig.tokens_of(question()) == {A: 320}


def test_a_set_may_name_its_hash_scheme() -> None:
    """In the place of its engine's name."""
    rig = PrefixRig(replace(SET, hash_scheme="ours"))
    rig.report(A, PROMPT[:320], hash_scheme="ours")
    rig.report(B, PROMPT)
    assert rig.tokens_of(ASKED) == {A: 320}


def test_the_next_pick_meets_what_the_last_one_sent() -> None:
    """A burst of the same prompt: the engine has not said anything yet."""
    rig = PrefixRig(SET)
    rig.report(A, tokens(64, first=5_000))
    rig.report(B, tokens(64, first=5_000))
    rig.place(ASKED, B)
    found = rig.sense(ASKED)
    assert matched(found.matches) == {B: 639}
    assert found.matches[B].source is PrefixSource.SPECULATIVE
    assert found.source is PrefixSource.PRECISE


@pytest.mark.parametrize(("ttft_ms", "life_ms"), [(100.0, 2_000), (3_000.0, 6_000)])
def test_an_engine_that_says_what_it_holds_is_believed_before_for_so_long(
    ttft_ms: float, life_ms: int
) -> None:
    """Two seconds, or twice the expected time to the first token if that is longer."""
    rig = PrefixRig(SET)
    rig.report(A, tokens(64, first=5_000))
    rig.place(ASKED, A, ttft_ms)
    rig.clock.advance_ns(life_ms * NS_PER_MS - 1)
    assert rig.tokens_of(ASKED) == {A: 639}
    rig.clock.advance_ns(1)
    assert rig.tokens_of(ASKED) == {}


@pytest.mark.parametrize("ttft_ms", [float("inf"), float("nan"), 1e300])
def test_a_time_that_is_none_does_no_harm(ttft_ms: float) -> None:
    """It is the shortest life then, or at most that of a memory."""
    rig = PrefixRig(SET)
    rig.report(A, tokens(64, first=5_000))
    rig.place(ASKED, A, ttft_ms)
    assert rig.tokens_of(ASKED) == {A: 639}
    rig.clock.advance_ns(rig.settings.idle_ns)
    assert rig.tokens_of(ASKED) == {}


def test_an_engine_that_says_nothing_is_believed_for_long() -> None:
    """Of the three only A reports; B goes by what it was sent."""
    rig = PrefixRig(SET)
    rig.report(A, tokens(64, first=5_000))
    rig.place(ASKED, B)
    rig.clock.advance_ns(599 * NS_PER_S)
    rig.report(A, tokens(64, first=5_000))
    found = rig.sense(ASKED)
    assert matched(found.matches) == {B: 639}
    assert found.matches[B].source is PrefixSource.APPROXIMATE
    rig.clock.advance_ns(NS_PER_S)
    assert rig.tokens_of(ASKED) == {}


def test_an_engine_that_has_fallen_silent_goes_by_what_it_was_sent() -> None:
    """Within the limit its word counts, after that the memory."""
    rig = PrefixRig(SET)
    rig.report(A, tokens(64, first=5_000))
    rig.place(ASKED, A)
    rig.clock.advance_ns(299 * NS_PER_S)
    assert rig.tokens_of(ASKED) == {}
    rig.clock.advance_ns(NS_PER_S)
    assert rig.tokens_of(ASKED) == {A: 639}


def test_while_the_index_cannot_say_the_memory_does() -> None:
    """Here its tenant is unknown to it."""
    rig = PrefixRig(SET)
    rig.report(A, PROMPT, tenant_id="other")
    rig.place(ASKED, A)
    rig.clock.advance_ns(60 * NS_PER_S)
    found = rig.sense(ASKED)
    assert (matched(found.matches), found.source) == ({A: 639}, PrefixSource.APPROXIMATE)
    assert found.degraded == ("unknown_tenant",)


def test_the_larger_of_both_counts() -> None:
    """The index has more of B, the memory more of A."""
    rig = PrefixRig(SET)
    rig.report(A, PROMPT[:64])
    rig.report(B, PROMPT)
    rig.place(ASKED, A)
    rig.place(ASKED, B)
    found = rig.sense(ASKED)
    assert {name: match.source for name, match in found.matches.items()} == {
        A: PrefixSource.SPECULATIVE,
        B: PrefixSource.PRECISE,
    }


def test_of_a_longer_prompt_what_it_has_in_common_is_warm() -> None:
    """In stretches of 64 tokens; what is left over at the end is not remembered."""
    rig = PrefixRig(BLIND)
    rig.reader.characters_answer = characters(640)
    rig.place(ASKED, A)
    rig.reader.characters_answer = characters(6_400)
    found = rig.sense(ASKED)
    assert matched(found.matches) == {A: 640}
    assert found.prompt_tokens is None
    assert found.source is PrefixSource.APPROXIMATE


def test_characters_and_tokens_are_never_taken_for_one_another() -> None:
    """Even if their hashes are the same."""
    rig = PrefixRig(SET)
    rig.report(A, tokens(64, first=5_000))
    rig.place(ASKED, B)
    assert rig.tokens_of(ASKED) == {B: 639}
    rig.reader.answer = NoBlocks(why="tokenizer_missing")
    rig.reader.characters_answer = replace(exact(PROMPT), is_exact=False)
    assert rig.tokens_of(ASKED) == {}


def test_no_tenant_is_led_by_the_prompts_of_another() -> None:
    """Unless their set has both share a tenant of the index."""
    rig = PrefixRig(BLIND)
    rig.reader.characters_answer = characters()
    rig.place(ASKED, A)
    assert rig.tokens_of(question(tenant="u")) == {}
    assert rig.tokens_of(ASKED) == {A: 639}


def test_a_prompt_is_withdrawn_where_it_was_never_sent() -> None:
    """An Abort, or the end of its time, before any answer."""
    rig = PrefixRig(BLIND)
    rig.reader.characters_answer = characters()
    abort(rig.place(ASKED, A))
    assert rig.tokens_of(ASKED) == {}
    for ending in (Ending.EXPIRED, Ending.EVICTED, Ending.UNSETTLED):
        rig.place(ASKED, A).ended(ending, None)
        assert rig.tokens_of(ASKED) == {}
    assert rig.knowledge.blocks.stretches == 0


@pytest.mark.parametrize("status", [0, 199, 300, 400, 429, 500, 503])
def test_a_prompt_is_withdrawn_where_its_answer_is_an_error(status: int) -> None:
    """Whatever becomes of it then."""
    rig = PrefixRig(BLIND)
    rig.reader.characters_answer = characters()
    follower = rig.place(ASKED, A)
    follower.first_token(first(status))
    assert rig.tokens_of(ASKED) == {}
    follower.ended(Ending.FINISHED, None)
    assert rig.knowledge.blocks.stretches == 0


def test_a_prompt_that_was_answered_stays() -> None:
    """An Abort or a silent end after the first token takes nothing away."""
    for ending in (Ending.ABORTED, Ending.EXPIRED, Ending.FINISHED):
        rig = PrefixRig(BLIND)
        rig.reader.characters_answer = characters()
        follower = rig.place(ASKED, A)
        follower.first_token(first())
        follower.ended(ending, None)
        assert rig.tokens_of(ASKED) == {A: 639}


def test_what_others_have_sent_is_not_withdrawn() -> None:
    """Two requests with the same beginning, one of them aborted."""
    rig = PrefixRig(BLIND)
    rig.reader.characters_answer = characters(320)
    rig.place(ASKED, A)
    rig.reader.characters_answer = characters(640)
    abort(rig.place(ASKED, A))
    assert rig.tokens_of(ASKED) == {A: 320}


def test_who_leaves_the_fleet_is_forgotten() -> None:
    """And begins anew when it comes back."""
    rig = PrefixRig(BLIND)
    rig.reader.characters_answer = characters()
    finish(rig.place(ASKED, A), cached=0)
    rig.place(ASKED, B)
    rig.knowledge.adopt([replace(BLIND, endpoints=BLIND.endpoints[1:])])
    rig.knowledge.adopt([BLIND])
    assert rig.tokens_of(ASKED) == {B: 639}


def test_what_is_idle_is_swept() -> None:
    """Without anybody asking for it."""
    rig = PrefixRig(BLIND)
    rig.reader.characters_answer = characters()
    rig.place(ASKED, A)
    rig.clock.advance_ns(600 * NS_PER_S)
    deque(rig.knowledge.sweep_slices(), maxlen=0)
    assert rig.knowledge.blocks.stretches == 0


def test_a_worker_is_remembered_as_much_as_it_has_room_for() -> None:
    """The beginning of a prompt is worth most."""
    rig = PrefixRig(BLIND, settings=PickerPrefixSettings(endpoint_blocks_max=4))
    rig.reader.characters_answer = characters()
    rig.place(ASKED, A)
    assert rig.tokens_of(ASKED) == {A: 256}
    assert rig.knowledge.blocks.stretches == 4


class SlowClock(ManualClock):
    """A clock of a machine on which everything takes long: time passes with every look."""

    def monotonic_ns(self) -> int:
        """Move on."""
        self.advance_ns(NS_PER_MS // 2)
        return super().monotonic_ns()


@pytest.mark.parametrize("clock", [None, SlowClock(1_000 * NS_PER_S)], ids=["quick", "slow"])
async def test_a_long_prompt_is_matched_in_slices(clock: ManualClock | None) -> None:
    """With the same answer, and no longer than the index may take."""
    rig = PrefixRig(SET, lookup=LookupSettings(match_slice_blocks=4), clock=clock)
    rig.report(A, PROMPT)
    rig.report(B, PROMPT[:320])
    found = await rig.knowledge.signal.sense(ASKED, candidates_of(SET))
    assert matched(found.matches) == {A: 639, B: 320}
    assert found.degraded == ()


@pytest.mark.parametrize(
    ("held", "clock", "turns"),
    [
        (640, None, 0),
        (640, SlowClock(1_000 * NS_PER_S), 9),
        (70, SlowClock(1_000 * NS_PER_S), 1),
        (32, SlowClock(1_000 * NS_PER_S), 0),
        (0, SlowClock(1_000 * NS_PER_S), 0),
    ],
)
async def test_slices_follow_at_once_while_they_take_no_time(
    held: int, clock: ManualClock | None, turns: int
) -> None:
    """Of those that do, each but the first waits for a turn of the loop."""
    rig = PrefixRig(SET, lookup=LookupSettings(match_slice_blocks=4), clock=clock)
    rig.report(A, PROMPT[:held])
    pick = asyncio.ensure_future(rig.knowledge.signal.sense(ASKED, candidates_of(SET)))
    await asyncio.sleep(0)
    for _ in range(turns):
        assert not pick.done()
        await asyncio.sleep(0)
    assert pick.done()
    assert matched((await pick).matches) == ({A: min(held // 16 * 16, 639)} if held else {})


async def test_a_long_prompt_for_which_there_is_no_time_is_told() -> None:
    """Its time is over between two slices."""
    clock = SlowClock(1_000 * NS_PER_S)
    rig = PrefixRig(SET, lookup=LookupSettings(match_slice_blocks=4), clock=clock)
    rig.report(A, PROMPT)
    steps = rig.knowledge.signal.sense(ASKED, candidates_of(SET))
    pick = asyncio.ensure_future(steps)
    await asyncio.sleep(0)
    rig.clock.advance_ns(30 * NS_PER_MS)
    found = await pick
    assert (found.degraded, dict(found.matches)) == (("index_timeout",), {})


@pytest.mark.parametrize(("eviction", "survivor"), [("LFU", A), ("LRU", B)])
def test_a_pick_that_goes_by_a_match_uses_it(eviction: str, survivor: str) -> None:
    """For tenants whose entries go by use, not by age."""
    rig = PrefixRig(SET, entries_max=40)
    policy = CachePolicy(namespace="t", eviction=eviction)
    rig.plane.set_policy(PolicySnapshot(policies=(policy,)))
    rig.report(A, PROMPT[:320])
    rig.place(ASKED, A)
    rig.clock.advance_ns(60 * NS_PER_S)
    rig.report(B, tokens(320, first=5_000))
    rig.clock.advance_ns(60 * NS_PER_S)
    rig.report(C, tokens(320, first=9_000))
    rig.reader.answer = exact(PROMPT[:320] if survivor == A else tokens(320, first=5_000))
    assert rig.tokens_of(ASKED) == {survivor: 319}
