"""The functional self-test, stage by stage, against a real index and against broken ones."""

from collections.abc import Iterator

import pytest
from served_plane import NOW_NS

from inferencecache.clock import ManualClock
from inferencecache.index import IndexEvent, PrefixIndex, StateUpdate
from inferencecache.policy import CachePolicy, PolicySnapshot, PolicyStore
from inferencecache.ranking import RankedReplica
from inferencecache.service.gates import Found
from inferencecache.service.match import Matcher
from inferencecache.service.probe import (
    PlaneProbeTarget,
    Prober,
    ProbeRequest,
    ProbeResult,
    Stage,
    T2Cycle,
    probe_hash,
    probe_replica_id,
)
from inferencecache.service.route_request import RouteRequest
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.policy import PolicySettings
from inferencecache.settings.ranking import RankingSettings
from inferencecache.types import (
    PROBE_REPLICA_PREFIX,
    PROBE_TENANT_ID,
    Candidate,
    PartitionKey,
    ReasonCode,
)

REQUEST = ProbeRequest(backend="b1", model="m1", hash_scheme="vllm")


class Bench:
    """A real index below a prober."""

    def __init__(self, **settings: int) -> None:
        index_settings = IndexSettings(**settings)
        self.clock = ManualClock(NOW_NS)
        self.policies = PolicyStore(PolicySettings(), index_settings.ttl_ns)
        self.index = PrefixIndex(index_settings, self.policies)
        matcher = Matcher(self.index, RankingSettings())
        self.target = PlaneProbeTarget(self.index, matcher, self.policies, self.clock)
        self.prober = Prober(self.target)

    def report(self, *hashes: bytes) -> None:
        """Report entries of a real replica."""
        update = StateUpdate(tenant_id="t1", model_id="m1", replica_id="real", hash_scheme="vllm")
        update.add_prefixes(list(hashes), [64] * len(hashes))
        self.index.report(update, self.clock.now_ns())

    def held(self) -> list[Candidate]:
        """Return who holds the probe's entry."""
        key = PartitionKey(PROBE_TENANT_ID, "m1", "vllm", "")
        return self.index.match_exact(key, probe_hash(REQUEST), self.clock.now_ns())


class BrokenTarget:
    """Use cases that do as they are told, or nothing."""

    def __init__(self, holders: list[Candidate] | None = None, found: Found | None = None) -> None:
        self.holders = [("__probe-b1", 16, 0, 1, 1)] if holders is None else holders
        self.found = found or (ReasonCode.NO_HINT, [])
        self.cleared: list[IndexEvent] = []

    def report(self, update: StateUpdate) -> None:
        """Lose the update."""

    def match(self, _key: PartitionKey, _hash: bytes, _tokens: int) -> list[Candidate]:
        """Return what was asked for."""
        return self.holders

    def route(self, _request: RouteRequest) -> Found:
        """Return what was asked for."""
        return self.found

    def clear(self, event: IndexEvent) -> None:
        """Remember the event."""
        self.cleared.append(event)


def run(prober: Prober, request: ProbeRequest = REQUEST) -> ProbeResult:
    """Run a probe without anything that could test an offload tier."""
    with pytest.raises(StopIteration) as finished:
        next(prober.steps(request))
    result: ProbeResult = finished.value.value
    return result


def run_t2(request: ProbeRequest, reason: str) -> tuple[ProbeResult, list[T2Cycle]]:
    """Run a probe whose offload tier answers *reason*."""
    steps = Bench().prober.steps(request, has_t2_prober=True)
    cycles: list[T2Cycle] = []
    try:
        cycles.append(next(steps))
        steps.send(reason)
    except StopIteration as finished:
        return finished.value, cycles
    raise AssertionError("a probe has at most one cycle")


def outcomes(result: ProbeResult) -> tuple[str, str, str]:
    """Return the three outcomes."""
    return result.ingest, result.routing, result.t2


def test_the_hash_is_stable_and_tells_targets_apart() -> None:
    """The same target has the same 32 bytes; any other backend, model or scheme has others."""
    first = probe_hash(REQUEST)
    assert first == probe_hash(ProbeRequest(backend="b1", model="m1", hash_scheme="vllm"))
    assert len(first) == 32
    others = [
        ProbeRequest(backend="b2", model="m1", hash_scheme="vllm"),
        ProbeRequest(backend="b1", model="m2", hash_scheme="vllm"),
        ProbeRequest(backend="b1", model="m1", hash_scheme="sglang"),
    ]
    assert len({first, *map(probe_hash, others)}) == 4


def crafted() -> Iterator[ProbeRequest]:
    """Yield targets whose names run into one another if they are only strung together."""
    for model, backend in (
        ("abc", "d"),
        ("ab", "cd"),
        ("a", "bcd"),
        ("", "m"),
        ("m", ""),
        ("a\nb", "c"),
        ("a", "b\nc"),
    ):
        yield ProbeRequest(backend=backend, model=model, hash_scheme="s")


def test_no_two_targets_share_a_hash_by_clever_names() -> None:
    """Names cannot smuggle a boundary."""
    hashes = [probe_hash(request) for request in crafted()]
    assert len(set(hashes)) == len(hashes)


def test_the_replica_is_a_reserved_one() -> None:
    """Its name starts with the reserved prefix and goes on."""
    assert probe_replica_id("b1") == f"{PROBE_REPLICA_PREFIX}b1"


def test_passing_means_every_stage_was_ok_or_skipped() -> None:
    """A result that was never filled in has not passed."""
    assert not ProbeResult().all_passed
    assert not ProbeResult(ingest="ok", routing="ok").all_passed
    assert not ProbeResult(ingest="ok", routing="failed", t2="skipped").all_passed
    assert ProbeResult(ingest="ok", routing="ok", t2="skipped").all_passed


def test_a_healthy_plane_passes() -> None:
    """Ingest and routing work; without a prober the offload tier is skipped."""
    result = run(Bench().prober)
    assert outcomes(result) == ("ok", "ok", "skipped")
    assert (result.errors, result.backend, result.all_passed) == ((), "b1", True)


@pytest.mark.parametrize(
    ("backend_type", "cycles_expected", "t2"),
    [("Memory", 0, "skipped"), ("", 1, "ok"), ("LMCache", 1, "ok")],
)
def test_only_backends_with_an_offload_tier_are_asked(
    backend_type: str, cycles_expected: int, t2: str
) -> None:
    """An empty type counts as one that has a tier."""
    request = ProbeRequest(backend="b1", model="m1", hash_scheme="vllm", backend_type=backend_type)
    result, cycles = run_t2(request, "")
    assert (outcomes(result), len(cycles)) == (("ok", "ok", t2), cycles_expected)
    for cycle in cycles:
        assert cycle == ("b1", b"probe-payload-v1\n" + probe_hash(request))


@pytest.mark.parametrize("reason", ["put failed: connection refused", "get failed: not found"])
def test_a_broken_offload_tier_is_told_apart_by_step(reason: str) -> None:
    """The message says in plain text which half failed and why."""
    result, _ = run_t2(REQUEST, reason)
    assert outcomes(result) == ("ok", "ok", "failed")
    assert result.errors == ((Stage.T2, f"T2 put/get cycle failed: {reason}"),)


def test_a_lost_report_fails_the_first_stage() -> None:
    """What follows is skipped, and the message names the replica."""
    target = BrokenTarget(holders=[])
    result = run(Prober(target))
    assert outcomes(result) == ("failed", "skipped", "skipped")
    assert result.errors[0].stage is Stage.INGEST
    assert "__probe-b1" in result.errors[0].message
    assert len(target.cleared) == 1


def test_a_lookup_without_a_match_names_its_reason() -> None:
    """The wrong strategy is one error."""
    result = run(Prober(BrokenTarget()))
    assert outcomes(result) == ("ok", "failed", "skipped")
    assert (result.errors[0].stage, "NO_HINT" in result.errors[0].message) == ("routing", True)


def test_a_match_with_the_wrong_replica_names_the_right_one() -> None:
    """The wrong replica is another error."""
    stranger = RankedReplica("stranger", 1.0, 16, 1.0, 1, 1)
    target = BrokenTarget(found=(ReasonCode.PREFIX_MATCH, [stranger]))
    result = run(Prober(target))
    assert outcomes(result) == ("ok", "failed", "skipped")
    assert "__probe-b1 is not among the scored replicas" in result.errors[0].message


def test_nothing_is_left_behind_however_often() -> None:
    """Three probes pass and leave neither entries nor statistics."""
    bench = Bench()
    for _ in range(3):
        assert run(bench.prober).all_passed
        assert not bench.held()
        assert not bench.index.stats_of(PROBE_TENANT_ID, "m1")
        bench.index.check_invariants()


def test_an_abandoned_probe_is_cleared_too() -> None:
    """Whoever stops waiting for the offload tier leaves nothing behind."""
    bench = Bench()
    steps = bench.prober.steps(REQUEST, has_t2_prober=True)
    next(steps)
    assert bench.held()
    steps.close()
    assert not bench.held()


def test_a_full_index_keeps_its_real_entries() -> None:
    """At a cap of one, the one real entry survives any number of probes and reports."""
    bench = Bench(entries_max=1)
    bench.report(b"real")
    for _ in range(16):
        assert run(bench.prober).all_passed
        bench.report(b"real")
    assert bench.index.match_exact(PartitionKey("t1", "m1", "vllm", ""), b"real", NOW_NS)


def test_the_probe_never_counts_as_data() -> None:
    """In the middle of a probe the index is as empty as before, to clients and operators."""
    bench = Bench()
    steps = bench.prober.steps(REQUEST, has_t2_prober=True)
    next(steps)
    assert bench.held()
    assert bench.index.is_empty()
    assert bench.index.snapshot().total_prefixes == 0
    assert not bench.index.snapshot().replicas
    assert bench.target.reports == bench.index.counters.updates == 1


def test_a_policy_cannot_make_the_probe_fail() -> None:
    """Gates are a tenant's wish; the probe looks at what lies below them."""
    bench = Bench()
    strict = CachePolicy(
        namespace=PROBE_TENANT_ID, minimum_matched_tokens=10_000, routing_floor_score=1e9
    )
    bench.policies.replace(PolicySnapshot(policies=(strict,)))
    assert run(bench.prober).all_passed
