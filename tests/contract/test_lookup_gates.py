"""LookupRoute over a real channel: floors, minimum lengths, affinity and LFU credit."""

import pytest
from served_plane import (
    MODEL,
    TENANT,
    ServedPlane,
    chain_entry,
    exact_entry,
    keys,
    lookup,
    new_plane,
    serve,
    set_policy,
    update,
)

from inferencecache.fingerprint import chain
from inferencecache.policy import CachePolicy, PolicySnapshot
from inferencecache.service import RouteRequest
from inferencecache.settings.index import IndexSettings
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

CHAIN = keys(8)
NOVEL = keys(2, salt=9)


async def serving(served: ServedPlane, *replicas: str) -> None:
    """Let each of *replicas* hold one prefix of its own."""
    await served.report(
        *(update(replica, exact_entry(f"own-{replica}".encode(), 32)) for replica in replicas)
    )


async def test_short_match_is_no_match_by_default(served: ServedPlane) -> None:
    """Sixteen matched tokens are below the default floor of 64, and 64 are not."""
    set_policy(served.plane, affinity_routing=False)
    await served.report(
        update("A", exact_entry(b"short", 16), exact_entry(b"long", 64)),
        update("B", exact_entry(b"x", 1)),
    )

    short = await served.look_up(prefix_hash=b"short")
    long = await served.look_up(prefix_hash=b"long")

    assert (short.reason_code, len(short.replica_scores)) == ("NO_HINT", 0)
    assert [s.matched_tokens for s in long.replica_scores] == [64]
    assert served.recorder.lookups == {
        (MODEL, "NO_HINT", False): 1,
        (MODEL, "PREFIX_MATCH", True): 1,
    }


@pytest.mark.parametrize(
    ("floor", "stored", "reason"), [(256, 100, "NO_HINT"), (0, 1, "PREFIX_MATCH")]
)
async def test_policy_sets_the_matched_tokens_floor(
    served: ServedPlane, floor: int, stored: int, reason: str
) -> None:
    """A policy's floor replaces the default; 0 switches it off."""
    set_policy(
        served.plane, affinity_routing=False, minimum_matched_tokens=floor, routing_floor_score=0.0
    )
    await served.report(update("A", exact_entry(b"p", stored)))

    assert (await served.look_up(prefix_hash=b"p")).reason_code == reason


@pytest.mark.parametrize(("blocks", "reason"), [(3, "AFFINITY_HINT"), (4, "PREFIX_MATCH")])
async def test_without_a_policy_a_match_of_64_tokens_is_the_shortest(
    served: ServedPlane, blocks: int, reason: str
) -> None:
    """Of 48 tokens that are held there is no match; the prompt's hash picks the replica."""
    await served.report(update("A", chain_entry(CHAIN[:blocks])))

    answer = await served.look_up(chain=CHAIN)

    assert answer.reason_code == reason
    assert [s.replica_id for s in answer.replica_scores] == ["A"]


async def test_floor_drops_single_replicas(served: ServedPlane) -> None:
    """Replicas below the floor go, the others stay."""
    await served.report(
        update("A", chain_entry(CHAIN[:4])),
        update("B", chain_entry(CHAIN[:1])),
        update("C", exact_entry(b"x", 1)),
    )

    answer = await served.look_up(chain=CHAIN)

    assert [(s.replica_id, s.matched_tokens) for s in answer.replica_scores] == [("A", 64)]


async def test_what_everybody_holds_tells_nothing(served: ServedPlane) -> None:
    """A prefix held by all replicas scores 0, below any floor but none."""
    set_policy(served.plane, affinity_routing=False)
    await served.report(*(update(r, exact_entry(b"p", 1500)) for r in ("r0", "r1", "r2")))

    assert (await served.look_up(prefix_hash=b"p")).reason_code == "NO_HINT"

    set_policy(
        served.plane,
        affinity_routing=False,
        routing_floor_score=0.0,
        minimum_matched_tokens=0,
    )
    answer = await served.look_up(prefix_hash=b"p")

    assert answer.reason_code == "PREFIX_MATCH"
    assert [(s.replica_id, s.score) for s in answer.replica_scores] == [
        ("r0", 0.0),
        ("r1", 0.0),
        ("r2", 0.0),
    ]


async def test_routing_floor_of_the_policy(served: ServedPlane) -> None:
    """A match whose best score is below the policy's floor is none."""
    await served.report(update("A", exact_entry(b"p", 64)))

    assert (await served.look_up(prefix_hash=b"p")).reason_code == "PREFIX_MATCH"

    set_policy(served.plane, affinity_routing=False, routing_floor_score=100.0)

    assert (await served.look_up(prefix_hash=b"p")).reason_code == "NO_HINT"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"prefix_hash": b"p", "prefix_token_count": 10}, "NO_HINT"),
        ({"prefix_hash": b"p"}, "NO_HINT"),
        ({"prefix_hash": b"p", "prefix_token_count": 100}, "PREFIX_MATCH"),
        ({"chain": CHAIN[:2], "prefix_token_count": 999}, "NO_HINT"),
        ({"chain": CHAIN}, "PREFIX_MATCH"),
    ],
)
async def test_short_prompts_are_not_looked_up(
    served: ServedPlane, asked: dict[str, object], reason: str
) -> None:
    """Without affinity a prompt below the minimum is NO_HINT; a chain's tokens outweigh a claim."""
    set_policy(served.plane, affinity_routing=False, minimum_prefix_tokens=50)
    await served.report(
        update("A", chain_entry(CHAIN), exact_entry(b"p", 100)), update("B", exact_entry(b"x", 1))
    )

    answer = await served.look_up(adapter_id="", **asked)

    assert answer.reason_code == reason


@pytest.mark.parametrize(
    "asked", [{"prefix_hash": b"p", "prefix_token_count": 1}, {"chain": CHAIN}]
)
async def test_short_prompts_get_affinity_instead(
    served: ServedPlane, asked: dict[str, object]
) -> None:
    """With affinity a match of a prompt below the minimum becomes a stable pick without claims."""
    set_policy(served.plane, minimum_prefix_tokens=1024, minimum_matched_tokens=0)
    await served.report(update("r-1", chain_entry(CHAIN), exact_entry(b"p", 64)))

    answer = await served.look_up(**asked)

    assert answer.reason_code == "AFFINITY_HINT"
    assert list(answer.replica_scores) == [pb.ReplicaScore(replica_id="r-1")]


async def test_short_prompts_do_not_hide_a_wrong_scheme(served: ServedPlane) -> None:
    """A diagnosis comes before the affinity of a short prompt."""
    set_policy(served.plane, minimum_prefix_tokens=1024)
    await serving(served, "r-1")

    answer = await served.look_up(chain=NOVEL, hash_scheme="other")

    assert answer.reason_code == "UNKNOWN_HASH_SCHEME"


async def test_short_prompts_do_not_get_tenant_hot(served: ServedPlane) -> None:
    """A warm replica is no answer to a prompt below the minimum either."""
    set_policy(served.plane, minimum_prefix_tokens=1024)
    await served.report(update("r-1", exact_entry(b"x", 32), stats=pb.ReplicaStats(hit_rate=0.9)))

    answer = await served.look_up(prefix_hash=b"novel", prefix_token_count=1)

    assert (answer.reason_code, len(answer.replica_scores)) == ("AFFINITY_HINT", 1)


async def test_affinity_is_stable_and_claims_nothing(served: ServedPlane) -> None:
    """The same unknown prompt goes to the same replica, with all numbers 0."""
    await serving(served, "r-1", "r-2", "r-3", "r-4")

    answers = [await served.look_up(chain=NOVEL) for _ in range(11)]

    assert {a.reason_code for a in answers} == {"AFFINITY_HINT"}
    (chosen,) = {a.replica_scores[0].replica_id for a in answers}
    assert list(answers[0].replica_scores) == [pb.ReplicaScore(replica_id=chosen)]


async def test_affinity_depends_on_membership_as_documented(served: ServedPlane) -> None:
    """Modulo over the sorted serving replicas; those of another scheme do not count."""
    hashes = chain(range(1, 49), 16)
    await served.report(update("q", exact_entry(b"x", 32), hash_scheme="sglang"))
    picks = []
    for number in range(6):
        await serving(served, f"r{number}")
        answer = await served.look_up(chain=hashes)
        picks.append(answer.replica_scores[0].replica_id)

    assert picks == ["r0", "r0", "r2", "r0", "r1", "r2"]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"prefix_hash": b"p", "block_token_counts": [16]},
        {"block_hashes": CHAIN, "block_token_counts": [16]},
    ],
)
async def test_no_affinity_without_a_sound_fingerprint(
    served: ServedPlane, asked: dict[str, object]
) -> None:
    """Nothing to hash, or arrays that disagree: NO_HINT."""
    await serving(served, "r-1")

    assert (await served.look_up(**asked)).reason_code == "NO_HINT"


async def test_no_affinity_where_nobody_serves_or_policy_forbids(served: ServedPlane) -> None:
    """An empty index has nobody to pin to; a policy can switch affinity off."""
    assert (await served.look_up(chain=NOVEL)).reason_code == "NO_HINT"

    set_policy(served.plane, affinity_routing=False)
    await serving(served, "r-1")

    assert (await served.look_up(chain=NOVEL)).reason_code == "NO_HINT"


async def test_delivered_matches_earn_lfu_credit() -> None:
    """Under LFU an entry that was looked up outlives a newer one that was not."""
    plane = new_plane(index=IndexSettings(entries_max=1))
    set_policy(plane, eviction="lfu", routing_floor_score=0.0)
    async with serve(plane) as served:
        await served.report(update("A", exact_entry(b"a", 128)))
        for _ in range(3):
            assert (await served.look_up(prefix_hash=b"a")).reason_code == "PREFIX_MATCH"
        plane.clock.advance_ns(1_000_000)
        await served.report(update("B", exact_entry(b"b", 128)))

        assert [s.replica_id for s in (await served.look_up(prefix_hash=b"a")).replica_scores] == [
            "A"
        ]


async def test_replicas_below_the_floor_earn_no_credit() -> None:
    """Only what is delivered counts as used."""
    plane = new_plane(index=IndexSettings(entries_max=6))
    set_policy(plane, eviction="lfu", routing_floor_score=0.0)
    async with serve(plane) as served:
        await served.report(update("rB", chain_entry(CHAIN[:2])))
        plane.clock.advance_ns(1_000_000)
        await served.report(update("rA", chain_entry(CHAIN[:4])))
        for _ in range(3):
            answer = await served.look_up(chain=CHAIN)
            assert [s.replica_id for s in answer.replica_scores] == ["rA"]
        plane.clock.advance_ns(1_000_000)
        await served.report(update("filler", exact_entry(b"filler", 128)))

        held = plane.lookup_route(
            RouteRequest(
                tenant_id=TENANT, model_id=MODEL, hash_scheme="vllm", prefix_hash=b"filler"
            )
        )

        assert [replica.replica_id for replica in held.replicas] == ["filler"]
        assert plane.index.entries == 6


async def test_timed_out_lookups_earn_no_credit() -> None:
    """A TIMEOUT credits nothing, so the older entry goes."""
    plane = new_plane(index=IndexSettings(entries_max=1))
    policy = CachePolicy(
        namespace=TENANT, eviction="lfu", routing_floor_score=0.0, lookup_timeout_ms=5
    )
    plane.set_policy(PolicySnapshot(policies=(policy,)))
    async with serve(plane) as served:
        await served.report(update("A", exact_entry(b"a", 128)))
        for _ in range(3):
            answer = plane.lookup_route(
                RouteRequest(
                    tenant_id=TENANT, model_id=MODEL, hash_scheme="vllm", prefix_hash=b"a"
                ),
                deadline_ns=plane.clock.monotonic_ns(),
            )
            assert answer.reason_code == "TIMEOUT"
        plane.clock.advance_ns(1_000_000)
        await served.report(update("B", exact_entry(b"b", 128)))

        answer = await served.stub.LookupRoute(lookup(prefix_hash=b"b"))

        assert [s.replica_id for s in answer.replica_scores] == ["B"]
