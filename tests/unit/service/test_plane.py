"""The plane's calls that transports make without gRPC."""

from scripted_tokenizer import ScriptedTokenizer
from served_plane import MODEL, SCHEME, TENANT, new_plane, set_policy

from inferencecache.clock import NS_PER_S
from inferencecache.index import EventType, IndexEvent, StateUpdate
from inferencecache.picker.prefix.sightings import Sightings
from inferencecache.policy import Strategy
from inferencecache.service import CachePlane, Gate, RouteAnswer, RouteRequest, RouteTrace
from inferencecache.types import PROBE_TENANT_ID, ReasonCode, StatsReport


def update_of(tenant_id: str) -> StateUpdate:
    """Return an update of one prefix."""
    update = StateUpdate(tenant_id=tenant_id, model_id=MODEL, replica_id="A", hash_scheme=SCHEME)
    update.add_prefix(b"p", 64)
    return update


def ask(plane: CachePlane, **fields: object) -> RouteAnswer:
    """Look up in the usual scope."""
    scope = {"tenant_id": TENANT, "model_id": MODEL, "hash_scheme": SCHEME}
    return plane.lookup_route(RouteRequest(**{**scope, **fields}))  # type: ignore[arg-type] # fields of the test's own


def test_reserved_tenant_is_skipped_everywhere() -> None:
    """Reports, sliced or not, and events of the reserved tenant change nothing."""
    plane = new_plane()
    plane.report(update_of(PROBE_TENANT_ID))

    assert list(plane.report_slices(update_of(PROBE_TENANT_ID))) == []
    assert not plane.index.has_tenant(PROBE_TENANT_ID)

    plane.index.report(update_of(PROBE_TENANT_ID), plane.clock.now_ns())
    plane.publish(
        IndexEvent(
            type=EventType.ALL_CLEARED,
            tenant_id=PROBE_TENANT_ID,
            model_id=MODEL,
            replica_id="A",
        )
    )

    assert plane.index.has_tenant(PROBE_TENANT_ID)
    assert plane.cache_state(PROBE_TENANT_ID, MODEL).total_prefixes == 0
    assert plane.snapshot_body().startswith('{"replicas":null')


def test_sweep_in_slices_or_at_once() -> None:
    """Both forms remove what has outlived its TTL by the plane's clock."""
    for sweep in ("sweep", "sweep_slices"):
        plane = new_plane()
        plane.report(update_of(TENANT))
        plane.clock.advance_ns(30 * 60 * NS_PER_S)
        list(getattr(plane, sweep)() or ())

        assert plane.index.entries == 0


def test_waiting_for_tokens_at_once_is_a_timeout() -> None:
    """Without a loop there is nobody to wait for a tokenizer."""
    plane = new_plane(tokenizer=ScriptedTokenizer(None))

    assert ask(plane, prompt_text="hello") == RouteAnswer(reason_code=ReasonCode.TIMEOUT)


def test_hint_used_means_that_there_is_a_replica() -> None:
    """Whatever the reason says."""
    plane = new_plane()
    plane.report(update_of(TENANT))

    assert ask(plane, prefix_hash=b"p").hint_used
    assert not ask(plane, tenant_id="nobody", prefix_hash=b"p").hint_used


def test_required_chain_is_traced() -> None:
    """The record names the policy's demand."""
    plane = new_plane()
    set_policy(plane, strategy=Strategy(require_chain=True))
    trace = RouteTrace()
    plane.lookup_route(RouteRequest(tenant_id=TENANT), trace=trace)

    assert [record.gate for record in trace.gates] == [Gate.REQUIRE_CHAIN]


def test_no_affinity_beside_an_ignored_but_malformed_chain() -> None:
    """With chain matching off the prefix hash is looked up, yet a broken chain pins nothing."""
    plane = new_plane()
    set_policy(plane, strategy=Strategy(enable_chain_matching=False))
    plane.report(update_of(TENANT))
    malformed = {"block_hashes": [b"a"], "block_token_counts": [1, 2]}

    assert ask(plane, prefix_hash=b"novel").reason_code == "AFFINITY_HINT"
    assert ask(plane, prefix_hash=b"novel", **malformed).reason_code == "NO_HINT"
    assert ask(plane, prefix_hash=b"p", **malformed).reason_code == "PREFIX_MATCH"


def test_a_replica_whose_name_is_too_long_is_not_noted() -> None:
    """Names that are kept have a limit, and so has what one peer can make us keep."""
    seen = Sightings(10)
    plane = new_plane(replicas=seen)
    for replica_id in ("r" * 4_096, "r" * 4_097):
        update = StateUpdate(
            tenant_id=TENANT, model_id=MODEL, replica_id=replica_id, hash_scheme=SCHEME
        )
        plane.report(update)
        list(plane.report_slices(update))
        plane.publish(
            IndexEvent(
                type=EventType.REPLICA_UPDATED,
                tenant_id=TENANT,
                model_id=MODEL,
                replica_id=replica_id,
            )
        )

    assert list(seen.seen_ns) == ["r" * 4_096]


def test_many_records_come_in_order_and_in_slices() -> None:
    """Putting a hundred thousand names in order is a long step."""
    plane = new_plane()
    names = [f"r{number * 7_919 % 10_007:05}" for number in range(10_007)]
    for name in names:
        update = StateUpdate(tenant_id=TENANT, model_id=MODEL, replica_id=name, hash_scheme=SCHEME)
        update.stats = StatsReport()
        plane.report(update)
    steps = plane.cache_state_slices(TENANT, MODEL)
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            state = finished.value
            break
        pauses += 1

    assert [record.replica_id for record in state.replicas] == sorted(names)
    assert pauses > 2 * len(names) // 2_048
