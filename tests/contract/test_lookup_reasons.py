"""LookupRoute over a real channel: every reason code, and what goes with it."""

import pytest
from served_plane import (
    MODEL,
    TENANT,
    ServedPlane,
    chain_entry,
    exact_entry,
    keys,
    lookup,
    set_policy,
    update,
)

from inferencecache.index import StateUpdate
from inferencecache.policy import Strategy
from inferencecache.types import PROBE_TENANT_ID
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

CHAIN = keys(8)
NOVEL = keys(8, salt=9)


async def seed(served: ServedPlane) -> None:
    """Let A hold the chain and B something else."""
    await served.report(update("A", chain_entry(CHAIN)), update("B", chain_entry(keys(1, salt=1))))


async def test_prefix_match_names_the_holder(served: ServedPlane) -> None:
    """A held chain is a match with the request's tokens, the freshness and the tier."""
    await seed(served)

    answer = await served.look_up(chain=CHAIN)

    assert answer.reason_code == "PREFIX_MATCH"
    (score,) = answer.replica_scores
    assert (score.replica_id, score.matched_tokens, score.tier) == ("A", 128, pb.CACHE_TIER_T1)
    assert score.score == pytest.approx(64.0)
    assert score.estimated_cache_hit_prob == 1.0
    assert served.recorder.lookups == {(MODEL, "PREFIX_MATCH", True): 1}


async def test_partial_chain_matches_its_leading_run(served: ServedPlane) -> None:
    """Only the blocks held from the first one on count."""
    await seed(served)

    answer = await served.look_up(chain=[*CHAIN[:6], *NOVEL])

    assert [s.matched_tokens for s in answer.replica_scores] == [96]


async def test_tenant_hot_answers_an_exact_miss(served: ServedPlane) -> None:
    """A warm replica is a soft hint without matched tokens and without a tier."""
    await served.report(
        update("A", exact_entry(b"other", 128), stats=pb.ReplicaStats(hit_rate=0.8))
    )

    answer = await served.look_up(prefix_hash=b"novel")

    assert answer.reason_code == "TENANT_HOT"
    (score,) = answer.replica_scores
    assert (score.replica_id, score.matched_tokens, score.tier) == ("A", 0, 0)
    assert score.estimated_cache_hit_prob == pytest.approx(0.8)


async def test_tenant_hot_can_be_switched_off(served: ServedPlane) -> None:
    """Without TENANT_HOT and affinity an exact miss is NO_HINT."""
    set_policy(served.plane, affinity_routing=False, strategy=Strategy(enable_tenant_hot=False))
    await served.report(
        update("A", exact_entry(b"other", 128), stats=pb.ReplicaStats(hit_rate=0.8))
    )

    answer = await served.look_up(prefix_hash=b"novel")

    assert (answer.reason_code, len(answer.replica_scores)) == ("NO_HINT", 0)


async def test_chain_miss_never_becomes_tenant_hot(served: ServedPlane) -> None:
    """Who asks for the longest prefix gets no softer answer."""
    set_policy(served.plane, affinity_routing=False)
    await served.report(
        update("A", exact_entry(b"other", 128), stats=pb.ReplicaStats(hit_rate=0.9))
    )

    assert (await served.look_up(chain=NOVEL)).reason_code == "NO_HINT"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"tenant_id": "default"}, "UNKNOWN_TENANT"),
        ({"model_id": "m2"}, "UNKNOWN_MODEL"),
        ({"hash_scheme": "vllm-v1"}, "UNKNOWN_HASH_SCHEME"),
        ({"hash_scheme": "sglang"}, "UNKNOWN_HASH_SCHEME"),
    ],
)
async def test_wrong_contract_keys_are_told_apart(
    served: ServedPlane, asked: dict[str, str], reason: str
) -> None:
    """The outermost key that nothing is known of is named, never papered over by affinity."""
    await seed(served)

    answer = await served.look_up(chain=CHAIN, **asked)

    assert (answer.reason_code, len(answer.replica_scores)) == (reason, 0)
    assert served.recorder.lookups == {(asked.get("model_id", MODEL), reason, False): 1}


@pytest.mark.parametrize("key", ["tenant_id", "model_id", "hash_scheme"])
async def test_missing_contract_key_is_no_hint(served: ServedPlane, key: str) -> None:
    """An empty key is no domain: no match, no warm replica, no affinity."""
    await served.report(
        update("A", chain_entry(CHAIN), stats=pb.ReplicaStats(hit_rate=0.9)),
        update("A", chain_entry(CHAIN), **{key: ""}),
    )

    for asked in ({"chain": CHAIN}, {"prefix_hash": CHAIN[0]}):
        answer = await served.look_up(**asked, **{key: ""})

        assert (answer.reason_code, len(answer.replica_scores)) == ("NO_HINT", 0)


async def test_empty_index_says_no_hint_to_everybody(served: ServedPlane) -> None:
    """Right after a start nobody is told that his tenant is unknown."""
    assert (await served.look_up(chain=CHAIN)).reason_code == "NO_HINT"
    assert (await served.stub.LookupRoute(pb.LookupRouteRequest(model_id="m"))) == (
        pb.LookupRouteResponse(reason_code="NO_HINT")
    )


async def test_probe_tenant_does_not_end_the_cold_start(served: ServedPlane) -> None:
    """Entries of the self-test are no data: other tenants still get NO_HINT."""
    probe = StateUpdate(
        tenant_id=PROBE_TENANT_ID, model_id=MODEL, replica_id="__probe-1", hash_scheme="vllm"
    )
    probe.add_prefix(b"probe", 16)
    served.plane.index.report(probe, served.plane.clock.now_ns())

    assert (await served.look_up(chain=CHAIN)).reason_code == "NO_HINT"


async def test_probe_tenant_is_told_nothing(served: ServedPlane) -> None:
    """The reserved tenant gets NO_HINT with latency 0, whatever is held."""
    await seed(served)

    answer = await served.look_up(tenant_id=PROBE_TENANT_ID, chain=CHAIN, adapter_id="a")

    assert answer == pb.LookupRouteResponse(reason_code="NO_HINT")
    assert served.recorder.lookups == {(MODEL, "NO_HINT", False): 1}
    assert served.recorder.latencies_ns == [0]


async def test_policy_may_require_a_chain(served: ServedPlane) -> None:
    """What is no valid chain on the wire is refused before anything else is looked at."""
    set_policy(served.plane, strategy=Strategy(require_chain=True))
    await seed(served)
    refused = (
        {"prefix_hash": CHAIN[0]},
        {"block_hashes": CHAIN, "block_token_counts": [16]},
        {"block_token_counts": [16]},
        {"token_ids": range(64)},
        {"prompt_text": "hello"},
        {},
    )

    for asked in refused:
        answer = await served.look_up(adapter_id="a", **asked)

        assert answer == pb.LookupRouteResponse(reason_code="POLICY_REQUIRES_CHAIN")

    assert (await served.look_up(chain=CHAIN)).reason_code == "PREFIX_MATCH"


async def test_timeout_when_the_policy_leaves_no_time(served: ServedPlane) -> None:
    """A lookup that takes longer than the policy allows is a TIMEOUT, not an error."""
    set_policy(served.plane, lookup_timeout_ms=5)
    await seed(served)
    slow_down(served, 50_000_000)

    answer = await served.look_up(chain=CHAIN, adapter_id="a")

    assert answer.reason_code == "TIMEOUT"
    assert (len(answer.replica_scores), answer.adapter_id) == (0, "")
    assert answer.lookup_latency_us == 50_000


async def test_no_timeout_within_the_policy_budget(served: ServedPlane) -> None:
    """A lookup inside its budget is answered; another tenant's policy does not matter."""
    set_policy(served.plane, lookup_timeout_ms=1_000)
    await seed(served)
    slow_down(served, 50_000_000)

    assert (await served.look_up(chain=CHAIN)).reason_code == "PREFIX_MATCH"

    set_policy(served.plane, lookup_timeout_ms=5)

    assert (await served.look_up(tenant_id="t2", chain=CHAIN)).reason_code == "UNKNOWN_TENANT"


async def test_caller_with_time_left_is_answered(served: ServedPlane) -> None:
    """A deadline that is far away changes nothing."""
    await seed(served)

    answer = await served.stub.LookupRoute(lookup(chain=CHAIN), timeout=60)

    assert answer.reason_code == "PREFIX_MATCH"


async def test_caller_out_of_time_gets_timeout_and_ok(served: ServedPlane) -> None:
    """The caller's deadline counts by the server's clock too; the call itself does not fail."""
    await seed(served)
    slow_down(served, 3_600_000_000_000)

    answer = await served.stub.LookupRoute(lookup(chain=CHAIN), timeout=60)

    assert (answer.reason_code, len(answer.replica_scores)) == ("TIMEOUT", 0)


def slow_down(served: ServedPlane, by_ns: int) -> None:
    """Let every look into the index take *by_ns* of the plane's clock."""
    matcher = served.plane._route._parts.matcher
    index = matcher._index

    class SlowIndex:
        def __getattr__(self, name: str) -> object:
            return getattr(index, name)

        def match_chain(self, *args: object) -> object:
            served.plane.clock.advance_ns(by_ns)
            return index.match_chain(*args)

    matcher._index = SlowIndex()


async def test_adapters_are_partitions(served: ServedPlane) -> None:
    """The same tokens under another adapter are another prompt; the echo says which was asked."""
    await served.report(
        update("A", chain_entry(CHAIN, adapter_id="sql-lora")),
        update("B", chain_entry(CHAIN), adapter_id="chat-lora"),
        update("C", chain_entry(keys(1, salt=1))),
    )

    sql = await served.look_up(chain=CHAIN, adapter_id="sql-lora")
    chat = await served.look_up(chain=CHAIN, adapter_id="chat-lora")

    assert [s.replica_id for s in sql.replica_scores] == ["A"]
    assert [s.replica_id for s in chat.replica_scores] == ["B"]
    assert (sql.adapter_id, chat.adapter_id) == ("sql-lora", "chat-lora")
    for other in ("", "never-loaded"):
        answer = await served.look_up(chain=CHAIN, adapter_id=other)

        assert (answer.reason_code, answer.adapter_id) == ("AFFINITY_HINT", other)


async def test_tiers_come_back_as_the_wire_knows_them(served: ServedPlane) -> None:
    """T1 to T3 are named, unset means T1, and what is unknown is unspecified."""
    reported = {b"one": 1, b"two": 2, b"three": 3, b"unset": 0, b"big": 99, b"negative": -1}
    entries = [exact_entry(key, 128, tier=tier) for key, tier in reported.items()]
    await served.report(update("A", *entries), update("B", exact_entry(b"x", 1)))

    seen = {key: (await served.look_up(prefix_hash=key)).replica_scores[0].tier for key in reported}

    assert seen == {b"one": 1, b"two": 2, b"three": 3, b"unset": 1, b"big": 0, b"negative": 0}


async def test_tight_target_favours_what_is_fresh(served: ServedPlane) -> None:
    """A request that wants its first token soon scores fresh entries higher."""
    await seed(served)

    relaxed = await served.look_up(chain=CHAIN)
    tight = await served.look_up(chain=CHAIN, slo=pb.SLO(ttft_ms=50))

    assert {relaxed.reason_code, tight.reason_code} == {"PREFIX_MATCH"}
    assert tight.replica_scores[0].score > relaxed.replica_scores[0].score


async def test_saturated_holder_gives_way(served: ServedPlane) -> None:
    """Full pressure takes a longer match behind a shorter one; unknown pressure takes nothing."""
    await served.report(
        update("A", chain_entry(CHAIN), stats=pb.ReplicaStats(pressure=1.0)),
        update("B", chain_entry(CHAIN[:6]), stats=pb.ReplicaStats(pressure=0.0)),
        update("C", chain_entry(keys(1, salt=1))),
    )

    answer = await served.look_up(chain=CHAIN)

    assert [(s.replica_id, s.matched_tokens) for s in answer.replica_scores] == [
        ("B", 96),
        ("A", 128),
    ]
    assert answer.replica_scores[1].score == 0.0

    await served.stub.PublishEvent(
        pb.CacheEvent(
            type=pb.CacheEvent.ALL_CLEARED, tenant_id=TENANT, model_id=MODEL, replica_id="A"
        )
    )
    await served.report(update("A", chain_entry(CHAIN)))

    answer = await served.look_up(chain=CHAIN)

    assert [s.replica_id for s in answer.replica_scores] == ["A", "B"]


async def test_ties_are_broken_by_replica_id(served: ServedPlane) -> None:
    """Equal replicas come in the order of their ids, every time."""
    await served.report(
        *(update(replica, chain_entry(CHAIN)) for replica in ("r2", "r1")),
        update("r3", chain_entry(keys(1, salt=1))),
    )

    answers = {
        tuple(s.replica_id for s in (await served.look_up(chain=CHAIN)).replica_scores)
        for _ in range(100)
    }

    assert answers == {("r1", "r2")}


async def test_a_lookup_logs_nothing(served: ServedPlane, caplog: pytest.LogCaptureFixture) -> None:
    """The path of every request writes no line, at any level."""
    caplog.set_level(0)
    await seed(served)
    caplog.clear()

    await served.stub.LookupRoute(lookup(chain=CHAIN))

    assert served.recorder.lines == []
    assert [record for record in caplog.records if record.name.startswith("inferencecache")] == []
