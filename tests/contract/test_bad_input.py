"""Input outside the contract over a real channel: the documented answer, a count, no failure."""

import math
from collections.abc import AsyncIterator

import grpc
import pytest
from served_plane import (
    MODEL,
    NOW_NS,
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

from inferencecache.clock import NS_PER_S, NS_PER_US
from inferencecache.index import DropReason
from inferencecache.settings.index import IndexSettings
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

CHAIN = keys(8)
NOW_US = NOW_NS // NS_PER_US
INT64_MAX, INT64_MIN, INT32_MAX = 2**63 - 1, -(2**63), 2**31 - 1
BROKEN_STRING = b"\x0a\x02\xff\xfe"
"""Field 1, a string in every request, that is not UTF-8."""


@pytest.fixture
async def watched(caplog: pytest.LogCaptureFixture) -> AsyncIterator[ServedPlane]:
    """Serve a plane; afterwards nothing may have failed, and it must still work."""
    async with serve() as served:
        yield served
        served.plane.index.check_invariants()
        assert served.plane.snapshot_body()
        await served.report(update("last", exact_entry(b"last", 64)))
        answer = await served.look_up(prefix_hash=b"last")
        assert "last" in [score.replica_id for score in answer.replica_scores]
    assert served.recorder.failures == {}
    assert served.recorder.lines == []
    assert [r for r in caplog.records if r.exc_info or r.levelname == "ERROR"] == []


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (
            pb.PrefixEntry(block_hashes=CHAIN, block_token_counts=[16]),
            DropReason.MALFORMED_CHAIN,
        ),
        (pb.PrefixEntry(block_token_counts=[16]), DropReason.MALFORMED_CHAIN),
        (
            pb.PrefixEntry(block_hashes=CHAIN, prefix_hash=b"p", token_count=128),
            DropReason.MALFORMED_CHAIN,
        ),
        (pb.PrefixEntry(token_count=500), DropReason.EMPTY_HASH),
        (pb.PrefixEntry(), DropReason.EMPTY_HASH),
        (
            pb.PrefixEntry(block_hashes=[b"a", b""], block_token_counts=[16, 16]),
            DropReason.EMPTY_HASH,
        ),
        (exact_entry(b"p", -5), DropReason.NEGATIVE_COUNT),
        (
            pb.PrefixEntry(block_hashes=CHAIN[:2], block_token_counts=[16, -16]),
            DropReason.NEGATIVE_COUNT,
        ),
    ],
)
async def test_bad_entry_is_dropped_alone(
    watched: ServedPlane, entry: pb.PrefixEntry, why: DropReason
) -> None:
    """A bad entry is dropped whole and counted; its neighbours on both sides stay."""
    await watched.report(update("A", exact_entry(b"before", 64), entry, exact_entry(b"after", 64)))

    assert watched.plane.index.entries == 2
    assert watched.plane.index.counters.drops == {why: 1}


async def test_lookup_of_a_dropped_negative_count(watched: ServedPlane) -> None:
    """A prefix reported with a negative count is not found."""
    await watched.report(update("A", exact_entry(b"p", -5), exact_entry(b"x", 1)))

    assert (await watched.look_up(prefix_hash=b"p")).reason_code == "AFFINITY_HINT"


async def test_sums_saturate(watched: ServedPlane) -> None:
    """Token counts that add up beyond the wire's integers stay at its largest."""
    await watched.report(
        update("A", pb.PrefixEntry(block_hashes=CHAIN[:2], block_token_counts=[INT32_MAX, 10])),
        update("B", exact_entry(b"x", 1)),
    )

    asked = {"block_hashes": CHAIN[:2], "block_token_counts": [INT32_MAX, 10]}
    by_chain = await watched.look_up(**asked)
    by_hash = await watched.look_up(prefix_hash=CHAIN[1])

    assert [s.matched_tokens for s in by_chain.replica_scores] == [INT32_MAX]
    assert [s.matched_tokens for s in by_hash.replica_scores] == [INT32_MAX]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
async def test_statistics_that_are_no_numbers_count_as_zero(
    watched: ServedPlane, value: float
) -> None:
    """NaN and infinities become 0, so that no score is ever NaN."""
    await watched.report(
        update("A", chain_entry(CHAIN), stats=pb.ReplicaStats(hit_rate=value, pressure=value)),
        update("B", exact_entry(b"x", 1)),
    )

    answer = await watched.look_up(chain=CHAIN)
    state = await watched.stub.GetCacheState(
        pb.GetCacheStateRequest(tenant_id=TENANT, model_id=MODEL)
    )

    assert answer.replica_scores[0].score == pytest.approx(64.0)
    assert (state.replicas[0].hit_rate, state.replicas[0].pressure) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("stats", "score"),
    [
        (pb.ReplicaStats(pressure=-3.0), 64.0),
        (pb.ReplicaStats(pressure=1e38), 0.0),
        (
            pb.ReplicaStats(
                cache_memory_bytes=INT64_MIN, t2_hit_tokens=INT64_MIN, t2_query_tokens=INT64_MAX
            ),
            64.0,
        ),
    ],
)
async def test_statistics_out_of_range_are_clamped_where_used(
    watched: ServedPlane, stats: pb.ReplicaStats, score: float
) -> None:
    """Pressure outside 0 to 1 acts like the nearer end; other numbers are carried as they are."""
    set_policy(watched.plane, minimum_matched_tokens=0, routing_floor_score=0.0)
    await watched.report(
        update("A", chain_entry(CHAIN), stats=stats), update("B", exact_entry(b"x", 1))
    )

    answer = await watched.look_up(chain=CHAIN)

    assert answer.replica_scores[0].score == pytest.approx(score)


async def test_absurd_hit_rate_still_gives_a_finite_hint(watched: ServedPlane) -> None:
    """The largest hit rate a producer can send makes no infinite score."""
    await watched.report(update("A", exact_entry(b"x", 1), stats=pb.ReplicaStats(hit_rate=3.4e38)))

    answer = await watched.look_up(prefix_hash=b"novel", slo=pb.SLO(ttft_ms=50))

    assert answer.reason_code == "TENANT_HOT"
    assert math.isfinite(answer.replica_scores[0].score)


@pytest.mark.parametrize(
    ("stamp_us", "reason", "clamped"),
    [
        (0, "PREFIX_MATCH", 0),
        (NOW_US - 60_000_000, "PREFIX_MATCH", 0),
        (NOW_US + 3_600_000_000, "PREFIX_MATCH", 1),
        (1_700_000_000_000_000_000, "PREFIX_MATCH", 1),
        (INT64_MAX, "PREFIX_MATCH", 1),
        (8_123_000_000, "AFFINITY_HINT", 0),
        (-1, "AFFINITY_HINT", 0),
        (INT64_MIN, "AFFINITY_HINT", 0),
    ],
)
async def test_absurd_timestamps(
    watched: ServedPlane, stamp_us: int, reason: str, clamped: int
) -> None:
    """The future counts as now and is counted; the distant past is stored and stale at once."""
    await watched.report(
        update("A", chain_entry(CHAIN), timestamp_us=stamp_us, stats=pb.ReplicaStats(hit_rate=0.5)),
        update("B", exact_entry(b"x", 1)),
    )

    assert (await watched.look_up(chain=CHAIN)).reason_code == reason
    assert watched.plane.index.counters.timestamps_clamped == clamped
    assert "0001-01-01T" in watched.plane.snapshot_body()


async def test_entry_from_the_future_is_not_immortal(watched: ServedPlane) -> None:
    """One TTL after it arrived it is gone."""
    await watched.report(update("A", chain_entry(CHAIN), timestamp_us=INT64_MAX))
    watched.plane.clock.advance_ns(30 * 60 * NS_PER_S)
    watched.plane.sweep()

    assert watched.plane.index.entries == 0


async def test_absurd_event_timestamps(watched: ServedPlane) -> None:
    """Events with any timestamp are applied or ignored, never an error."""
    for kind in pb.CacheEvent.Type.values():
        for stamp in (INT64_MIN, -1, INT64_MAX):
            await watched.report(
                update("A", exact_entry(b"p", 64), stats=pb.ReplicaStats(hit_rate=0.5))
            )
            ack = await watched.stub.PublishEvent(
                pb.CacheEvent(
                    type=kind,
                    tenant_id=TENANT,
                    model_id=MODEL,
                    replica_id="A",
                    prefix_hash=b"p",
                    timestamp_us=stamp,
                )
            )

            assert ack.accepted
            assert watched.plane.snapshot_body()


async def test_unknown_enum_values_are_carried_or_ignored(watched: ServedPlane) -> None:
    """Tiers and event types of a newer contract do no harm."""
    await watched.report(
        update(
            "A",
            chain_entry(CHAIN, tier=77),
            exact_entry(b"p", 64, tier=-(2**31)),
            exact_entry(b"q", 64, tier=INT32_MAX),
        ),
        update("B", exact_entry(b"x", 1)),
    )

    answer = await watched.look_up(chain=CHAIN)

    assert (answer.reason_code, answer.replica_scores[0].tier) == ("PREFIX_MATCH", 0)
    event = pb.CacheEvent(type=2_000, tenant_id=TENANT, model_id=MODEL, replica_id="A")
    assert (await watched.stub.PublishEvent(event)).accepted


async def test_hashes_of_mixed_lengths_in_one_report(watched: ServedPlane) -> None:
    """Short, long and very long hashes live side by side."""
    mixed = [b"a", b"bc", b"d" * 8, b"e" * 64, b"f" * 4_000]
    await watched.report(update("A", chain_entry(mixed)), update("B", exact_entry(b"x", 1)))

    answer = await watched.look_up(chain=mixed)

    assert [s.matched_tokens for s in answer.replica_scores] == [80]


@pytest.mark.parametrize("limit", [64, 4_096])
async def test_hashes_beyond_the_limit_are_dropped_each(limit: int) -> None:
    """However they are told: as a chain of one width or of several, one by one, known or not."""
    fitting = [bytes((number,)) * 64 for number in range(1, 41)]
    wide = [block + b"." for block in fitting]
    one_by_one = [exact_entry(block, 16 * n) for n, block in enumerate(wide, start=1)]
    async with serve(new_plane(index=IndexSettings(identifier_bytes_max=limit))) as served:
        await served.report(update("A", chain_entry(fitting)))
        for entries in ([chain_entry(wide)], one_by_one, [chain_entry([*wide, *fitting])]):
            await served.report(update("A", *entries))
        index = served.plane.index
        index.check_invariants()

        stored, dropped = (40, {DropReason.IDENTIFIER_TOO_LONG: 120}) if limit == 64 else (80, {})
        assert (index.entries, index.prefixes, index.counters.drops) == (stored, stored, dropped)


@pytest.mark.parametrize("field", ["tenant_id", "model_id", "replica_id", "hash_scheme"])
async def test_identifiers_beyond_the_limit_are_dropped(watched: ServedPlane, field: str) -> None:
    """A megabyte of name is stored nowhere; a lookup with it is a miss."""
    await watched.report(update("A", exact_entry(b"p", 64)))
    name = "x" * 1_000_000
    long_update = update("A", exact_entry(b"q", 64), stats=pb.ReplicaStats(hit_rate=0.5))
    setattr(long_update, field, name)
    await watched.report(long_update)

    assert watched.plane.index.counters.drops[DropReason.IDENTIFIER_TOO_LONG] >= 1
    if field != "replica_id":
        request = lookup(chain=CHAIN)
        setattr(request, field, name)
        answer = await watched.stub.LookupRoute(request)
        assert answer.reason_code.startswith("UNKNOWN_")


@pytest.mark.parametrize("data", [BROKEN_STRING, b"\xff\xff\xff", b"\x0a\x7f", b"\x07"])
async def test_lookup_that_does_not_parse_is_no_hint(watched: ServedPlane, data: bytes) -> None:
    """Even bytes that are no message get an answer, and are counted twice: as such and as one."""
    answer = pb.LookupRouteResponse.FromString(await watched.send_bytes("LookupRoute", data))

    assert answer == pb.LookupRouteResponse(reason_code="NO_HINT")
    assert watched.recorder.unparsable == {"LookupRoute": 1}
    assert watched.recorder.lookups == {("", "NO_HINT", False): 1}


@pytest.mark.parametrize(
    ("method", "data"),
    [
        ("GetCacheState", BROKEN_STRING),
        ("PublishEvent", b"\x12\x02\xff\xfe"),
        ("LookupPDRoute", BROKEN_STRING),
        ("RenderTemplate", BROKEN_STRING),
    ],
)
async def test_other_calls_that_do_not_parse_are_refused(
    watched: ServedPlane, method: str, data: bytes
) -> None:
    """INVALID_ARGUMENT names the call and what is wrong, and quotes nothing."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await watched.send_bytes(method, data)

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == (
        f"{method}: the request is not a valid message of at most 65,536 bytes"
    )
    assert watched.recorder.unparsable == {method: 1}


async def test_stream_request_that_does_not_parse_is_refused(watched: ServedPlane) -> None:
    """Also where the answer would be a stream."""
    call = watched.channel.unary_stream(
        "/inferencecache.v1alpha1.InferenceCache/StreamCacheEvents"
    )(BROKEN_STRING)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        assert [message async for message in call] == []

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_empty_names_are_literal(watched: ServedPlane) -> None:
    """A report without tenant and model is stored under the empty names, as sent."""
    await watched.report(update("", exact_entry(b"p", 64), tenant_id="", model_id=""))

    state = await watched.stub.GetCacheState(pb.GetCacheStateRequest())

    assert state.summary.total_prefixes == 1
