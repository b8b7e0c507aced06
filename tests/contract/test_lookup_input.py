"""LookupRoute over a real channel: which input counts, and what fails open."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from scripted_tokenizer import ScriptedTokenizer, ScriptedWork
from served_plane import (
    MODEL,
    ServedPlane,
    chain_entry,
    exact_entry,
    keys,
    new_plane,
    serve,
    set_policy,
    update,
)

from inferencecache.fingerprint import chain
from inferencecache.policy import Strategy
from inferencecache.service import FailOpen
from inferencecache.settings.lookup import LookupSettings
from inferencecache.transport.system_clock import SystemClock
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

TOKENS = range(1, 65)
CHAIN = chain(TOKENS, 16)
NOVEL_TOKENS = range(1_000, 1_064)
WARM = pb.ReplicaStats(hit_rate=0.9)


async def seed(served: ServedPlane) -> None:
    """Let A hold the chain of TOKENS and be warm, and B something else."""
    await served.report(
        update("A", chain_entry(CHAIN), stats=WARM), update("B", exact_entry(b"x", 32))
    )


@pytest.mark.parametrize(("blocks", "matched"), [(30, 30), (31, 30), (5_000, 30)])
@pytest.mark.parametrize("width", [8, None])
async def test_the_end_of_an_overlong_chain_is_ignored(
    blocks: int, matched: int, width: int | None
) -> None:
    """Whether it comes packed or its hashes differ in length, and with counts or without."""
    hashes = [key if width else key.lstrip(b"\0") for key in keys(blocks)]
    plane = new_plane(lookup=LookupSettings(chain_blocks_max=30, match_slice_blocks=8))
    async with serve(plane) as served:
        await served.report(update("A", chain_entry(hashes)), update("B", chain_entry(hashes[:10])))
        answer = await served.look_up(
            block_hashes=hashes, block_token_counts=[16] * min(blocks, 40)
        )

    assert answer.reason_code == "PREFIX_MATCH"
    assert [s.matched_tokens for s in answer.replica_scores] == [matched * 16, 160]
    assert plane.chains_cut == (blocks > 30)


async def test_a_chain_within_the_limit_needs_all_its_counts() -> None:
    """Nothing of a malformed chain is matched, however long the limit."""
    plane = new_plane(lookup=LookupSettings(chain_blocks_max=30))
    async with serve(plane) as served:
        await served.report(update("A", chain_entry(keys(30))))
        answer = await served.look_up(block_hashes=keys(30), block_token_counts=[16] * 29)

    assert (answer.reason_code, len(answer.replica_scores)) == ("NO_HINT", 0)
    assert plane.fail_opens[FailOpen.CHAIN_LENGTHS_DIFFER] == 1


async def test_token_ids_are_the_chain_they_hash_to(served: ServedPlane) -> None:
    """Token ids and their chain get the same answer; token ids are not echoed."""
    await seed(served)

    by_chain = await served.look_up(chain=CHAIN)
    by_tokens = await served.look_up(token_ids=TOKENS)

    assert by_tokens == by_chain
    assert by_tokens.replica_scores[0].matched_tokens == 64
    assert len(by_tokens.token_ids) == 0


async def test_block_size_is_a_setting() -> None:
    """A server for blocks of 32 tokens finds what engines with that size report."""
    plane = new_plane(lookup=LookupSettings(block_size_tokens=32))
    async with serve(plane) as served:
        await served.report(update("A", chain_entry(chain(TOKENS, 32), tokens=32)))

        assert (await served.look_up(token_ids=TOKENS)).reason_code == "PREFIX_MATCH"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"token_ids": range(15)}, FailOpen.SHORTER_THAN_BLOCK),
        ({"token_ids": range(1, 9)}, FailOpen.SHORTER_THAN_BLOCK),
        ({"block_token_counts": [16]}, FailOpen.CHAIN_LENGTHS_DIFFER),
        ({"block_hashes": CHAIN, "block_token_counts": [16]}, FailOpen.CHAIN_LENGTHS_DIFFER),
        (
            {"block_hashes": CHAIN, "block_token_counts": [16, 16, -1, 16]},
            FailOpen.CHAIN_COUNT_NEGATIVE,
        ),
        ({"block_hashes": CHAIN[:1], "block_token_counts": [-16]}, FailOpen.CHAIN_COUNT_NEGATIVE),
        ({"prompt_text": "hello"}, FailOpen.TOKENIZER_ABSENT),
        ({"prompt_text": "x" * (2**20 + 1)}, FailOpen.PROMPT_TOO_LONG),
        ({"prompt_text": "é" * 2**19 + "x"}, FailOpen.PROMPT_TOO_LONG),
        ({"token_ids": range(2**20 + 1)}, FailOpen.TOO_MANY_TOKENS),
        ({"token_ids": range(1_500_000)}, FailOpen.TOO_MANY_TOKENS),
    ],
)
async def test_unusable_input_fails_open(
    served: ServedPlane, asked: dict[str, object], why: FailOpen
) -> None:
    """No match, no warm replica, no affinity, no diagnosis and no error; but it is counted."""
    await seed(served)

    answer = await served.look_up(adapter_id="a", model_id="wrong", **asked)

    assert answer == pb.LookupRouteResponse(
        reason_code="NO_HINT", lookup_latency_us=answer.lookup_latency_us
    )
    assert {w: n for w, n in served.plane.fail_opens.items() if n} == {why: 1}


async def test_no_input_at_all_may_get_tenant_hot(served: ServedPlane) -> None:
    """Without any input nothing matches, not even an empty hash; a warm replica may answer."""
    assert (await served.look_up()).reason_code == "NO_HINT"

    await served.report(update("B", pb.PrefixEntry(token_count=500), exact_entry(b"x", 32)))

    assert (await served.look_up()).reason_code == "NO_HINT"

    await seed(served)
    answer = await served.look_up(token_ids=[], block_hashes=[], prompt_text="")

    assert answer.reason_code == "TENANT_HOT"


async def test_empty_hash_in_a_chain_never_matches(served: ServedPlane) -> None:
    """A chain that starts with an empty hash is a miss, whatever was reported."""
    await served.report(
        update("A", pb.PrefixEntry(block_hashes=[b""], block_token_counts=[64])),
        update("A", chain_entry(CHAIN)),
    )

    answer = await served.look_up(chain=[b"", *CHAIN])

    assert answer.reason_code == "AFFINITY_HINT"


async def test_explicit_chain_wins_over_token_ids(served: ServedPlane) -> None:
    """What the gateway hashed itself counts first."""
    await seed(served)

    answer = await served.look_up(chain=CHAIN, token_ids=NOVEL_TOKENS, prompt_text="x")

    assert answer.reason_code == "PREFIX_MATCH"


async def test_novel_token_ids_get_affinity(served: ServedPlane) -> None:
    """Derived hashes are a fingerprint like any other."""
    await seed(served)

    answer = await served.look_up(token_ids=NOVEL_TOKENS)

    assert answer.reason_code == "AFFINITY_HINT"
    assert [s.matched_tokens for s in answer.replica_scores] == [0]


async def test_without_chain_matching_the_prefix_hash_counts(served: ServedPlane) -> None:
    """Chains are ignored, token ids become their last hash, a chain alone fails open."""
    set_policy(served.plane, strategy=Strategy(enable_chain_matching=False))
    await served.report(
        update("A", exact_entry(b"p", 99), exact_entry(CHAIN[-1], 64)),
        update("B", exact_entry(b"x", 1)),
    )
    malformed = {"block_hashes": CHAIN, "block_token_counts": [16]}

    exact = await served.look_up(prefix_hash=b"p", chain=CHAIN)
    beside_malformed = await served.look_up(prefix_hash=b"p", **malformed)
    tokens = await served.look_up(token_ids=TOKENS)
    tokens_beside_malformed = await served.look_up(token_ids=TOKENS, **malformed)
    alone = await served.look_up(chain=CHAIN)

    assert [s.matched_tokens for s in exact.replica_scores] == [99]
    assert [s.matched_tokens for s in beside_malformed.replica_scores] == [99]
    assert [s.matched_tokens for s in tokens.replica_scores] == [64]
    assert [s.matched_tokens for s in tokens_beside_malformed.replica_scores] == [64]
    assert (alone.reason_code, alone.adapter_id) == ("NO_HINT", "")
    assert served.plane.fail_opens[FailOpen.CHAIN_DISABLED] == 1


# ---------------------------------------------------------------- prompt_text


@pytest.fixture
async def tokenizing() -> AsyncIterator[ServedPlane]:
    """Serve a plane that tokenizes every prompt of m1 to TOKENS."""
    async with serve(new_plane(tokenizer=ScriptedTokenizer(TOKENS))) as running:
        yield running


def tokenizer_of(served: ServedPlane) -> ScriptedTokenizer:
    """Return the tokenizer behind *served*."""
    tokenizer: ScriptedTokenizer = served.plane._route._parts.resolver._tokenizer
    return tokenizer


async def test_prompt_is_tokenized_and_its_tokens_echoed(tokenizing: ServedPlane) -> None:
    """The prompt matches as its tokens do, and the caller learns which they were."""
    await seed(tokenizing)

    answer = await tokenizing.look_up(prompt_text="hello")

    assert answer.reason_code == "PREFIX_MATCH"
    assert list(answer.token_ids) == list(TOKENS)
    assert tokenizer_of(tokenizing).calls == [(MODEL, "hello")]


async def test_novel_prompt_gets_affinity_with_its_tokens(tokenizing: ServedPlane) -> None:
    """Affinity echoes the tokens too."""
    await seed(tokenizing)
    tokenizer_of(tokenizing).result = NOVEL_TOKENS

    answer = await tokenizing.look_up(prompt_text="hello")

    assert (answer.reason_code, list(answer.token_ids)) == ("AFFINITY_HINT", list(NOVEL_TOKENS))


async def test_short_prompt_fails_open_with_its_tokens(tokenizing: ServedPlane) -> None:
    """Tokens that fill no block are echoed all the same."""
    tokenizer_of(tokenizing).result = range(8)

    answer = await tokenizing.look_up(prompt_text="hi")

    assert (answer.reason_code, list(answer.token_ids)) == ("NO_HINT", list(range(8)))


async def test_short_prompt_of_the_policy_echoes_too(tokenizing: ServedPlane) -> None:
    """So does a prompt below the policy's minimum."""
    set_policy(tokenizing.plane, affinity_routing=False, minimum_prefix_tokens=1_000)

    answer = await tokenizing.look_up(prompt_text="hello")

    assert (answer.reason_code, len(answer.token_ids)) == ("NO_HINT", 64)


@pytest.mark.parametrize(
    ("result", "model", "why"),
    [
        ((), MODEL, FailOpen.TOKENIZER_FAILED),
        (range(2**20 + 1), MODEL, FailOpen.TOO_MANY_TOKENS),
        (TOKENS, "unknown", FailOpen.TOKENIZER_ABSENT),
    ],
)
async def test_failed_tokenization_fails_open(
    tokenizing: ServedPlane, result: range, model: str, why: FailOpen
) -> None:
    """No tokens, too many, or a model without a tokenizer: NO_HINT without an echo."""
    tokenizer_of(tokenizing).result = result

    answer = await tokenizing.look_up(prompt_text="hello", model_id=model)

    assert (answer.reason_code, len(answer.token_ids)) == ("NO_HINT", 0)
    assert tokenizing.plane.fail_opens[why] == 1


@pytest.mark.parametrize("by_policy", [True, False])
async def test_slow_tokenizer_times_out(*, by_policy: bool) -> None:
    """A prompt whose tokens do not come is a TIMEOUT, by the policy's or the default budget."""
    plane = new_plane(
        clock=SystemClock(),
        tokenizer=ScriptedTokenizer(None),
        lookup=LookupSettings(tokenize_timeout_ns=60_000_000_000 if by_policy else 20_000_000),
    )
    if by_policy:
        set_policy(plane, lookup_timeout_ms=20)
    async with serve(plane) as served, asyncio.timeout(30):
        answer = await served.look_up(prompt_text="hello")

    assert (answer.reason_code, len(answer.token_ids)) == ("TIMEOUT", 0)


async def test_abandoned_tokenizations_count_against_the_limit() -> None:
    """Prompts beyond the limit fail open at once, until running ones have really ended."""
    tokenizer = ScriptedTokenizer(None)
    plane = new_plane(
        clock=SystemClock(),
        tokenizer=tokenizer,
        lookup=LookupSettings(tokenizations_max=2, tokenize_timeout_ns=20_000_000),
    )
    async with serve(plane) as served:
        reasons = [(await served.look_up(prompt_text="hello")).reason_code for _ in range(3)]

        assert reasons == ["TIMEOUT", "TIMEOUT", "NO_HINT"]
        assert plane.fail_opens[FailOpen.TOKENIZER_BUSY] == 1

        for work in plane._route._parts.resolver._slots._running:
            assert isinstance(work, ScriptedWork)
            work.result = TOKENS

        assert (await served.look_up(prompt_text="hello")).reason_code == "TIMEOUT"


async def test_hashes_of_mixed_lengths_are_opaque(served: ServedPlane) -> None:
    """Hashes may have any length; two short ones are not one long one."""
    await served.report(update("A", chain_entry([b"ab", b"cd", b"e" * 64])))

    whole = await served.look_up(chain=[b"ab", b"cd", b"e" * 64, *keys(2)])
    shifted = await served.look_up(chain=[b"abc", b"d"])

    assert [s.matched_tokens for s in whole.replica_scores if s.score] == []
    assert whole.reason_code == "AFFINITY_HINT"
    assert shifted.reason_code == "AFFINITY_HINT"
    set_policy(served.plane, minimum_matched_tokens=0)
    whole = await served.look_up(chain=[b"ab", b"cd", b"e" * 64, *keys(2)])
    assert [s.matched_tokens for s in whole.replica_scores] == [48]
