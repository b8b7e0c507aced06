"""The LookupRoute decision below the wire: deadlines, slices and the record of the reasons."""

import pytest
from served_plane import MODEL, NOW_NS, SCHEME, TENANT, Recorder, keys, new_plane, set_policy

from inferencecache.clock import NS_PER_MS
from inferencecache.fingerprint import chain
from inferencecache.index import StateUpdate
from inferencecache.policy import Strategy
from inferencecache.service import (
    CachePlane,
    Gate,
    RouteAnswer,
    RouteRequest,
    RouteSteps,
    RouteTrace,
)
from inferencecache.settings.lookup import LookupSettings
from inferencecache.types import PROBE_TENANT_ID, ReasonCode, StatsReport

CHAIN = keys(8)
SLICED = LookupSettings(slice_blocks=2)


def report(plane: CachePlane, replica_id: str, hashes: list[bytes]) -> None:
    """Let *replica_id* hold a chain of blocks of 16 tokens."""
    update = StateUpdate(
        tenant_id=TENANT, model_id=MODEL, replica_id=replica_id, hash_scheme=SCHEME
    )
    update.add_chain(hashes, [16] * len(hashes))
    plane.report(update)


def question(**fields: object) -> RouteRequest:
    """Return a lookup in the usual scope."""
    scope = {"tenant_id": TENANT, "model_id": MODEL, "hash_scheme": SCHEME}
    return RouteRequest(**{**scope, **fields})  # type: ignore[arg-type] # fields of the test's own


def chain_question(hashes: list[bytes], **fields: object) -> RouteRequest:
    """Return a lookup of a chain of blocks of 16 tokens."""
    return question(block_hashes=hashes, block_token_counts=[16] * len(hashes), **fields)


def finish(steps: RouteSteps) -> tuple[RouteAnswer, list[object]]:
    """Drive *steps* to its end; return the answer and what it yielded."""
    pauses: list[object] = []
    while True:
        try:
            pauses.append(next(steps))
        except StopIteration as finished:
            return finished.value, pauses


@pytest.mark.parametrize("deadline_ns", [0, NOW_NS - 1, NOW_NS])
def test_deadline_that_has_passed_is_a_timeout(deadline_ns: int) -> None:
    """Time that is up on arrival leaves nothing to do, and nothing is echoed."""
    plane = new_plane()
    report(plane, "A", CHAIN)

    answer = plane.lookup_route(chain_question(CHAIN, adapter_id="a"), deadline_ns)

    assert answer == RouteAnswer(reason_code=ReasonCode.TIMEOUT)


def test_timeout_comes_before_requiring_a_chain() -> None:
    """A caller without time is not told about policy."""
    plane = new_plane()
    set_policy(plane, strategy=Strategy(require_chain=True))

    assert plane.lookup_route(question(), deadline_ns=0).reason_code == "TIMEOUT"
    assert plane.lookup_route(question()).reason_code == "POLICY_REQUIRES_CHAIN"


def test_tighter_deadline_holds() -> None:
    """Neither the caller nor the policy can widen the other's budget."""
    plane = new_plane(lookup=SLICED)
    set_policy(plane, lookup_timeout_ms=10)
    request = question(token_ids=range(1, 1_000))
    for caller_ns, reason in ((NOW_NS + 5 * NS_PER_MS, "TIMEOUT"), (None, "NO_HINT")):
        plane.clock.set_ns(NOW_NS)
        steps = plane.lookup_route_steps(request, caller_ns)
        next(steps)
        plane.clock.set_ns(NOW_NS + 7 * NS_PER_MS)

        assert finish(steps)[0].reason_code == reason


def test_huge_prompts_are_hashed_in_slices() -> None:
    """The loop gets its turn between slices, and the answer is the chain's."""
    plane = new_plane(lookup=SLICED)
    tokens = range(1, 161)
    report(plane, "A", chain(tokens, 16))
    steps = plane.lookup_route_steps(question(token_ids=tokens))

    answer, pauses = finish(steps)

    assert pauses == [None] * 4
    assert answer.replicas[0].matched_tokens == 160
    assert plane.lookup_route(question(token_ids=tokens)) == answer


def test_small_requests_take_no_pause() -> None:
    """What fits into one slice is answered at once."""
    plane = new_plane()
    for request in (question(token_ids=range(1, 10_000)), chain_question(keys(2_048))):
        assert finish(plane.lookup_route_steps(request))[1] == []


MATCH_SLICED = LookupSettings(match_slice_blocks=3)


def test_long_chains_are_matched_in_slices() -> None:
    """The loop gets its turn in between, and the answer is the one step's."""
    sliced, whole = new_plane(lookup=MATCH_SLICED), new_plane()
    for plane in (sliced, whole):
        report(plane, "A", CHAIN)
        report(plane, "B", CHAIN[:5])
        report(plane, "C", keys(1, salt=3))

    assert sliced.answer_sent(chain_question(CHAIN)) is None
    answer, pauses = finish(sliced.lookup_route_steps(chain_question(CHAIN)))

    assert pauses == [None] * 2
    assert [(r.replica_id, r.matched_blocks) for r in answer.replicas] == [("A", 8), ("B", 5)]
    assert answer == whole.answer_sent(chain_question(CHAIN))


def test_long_chains_that_nobody_holds_are_pinned_alike() -> None:
    """Hashing them for the affinity pick is sliced, too."""
    sliced, whole = new_plane(lookup=MATCH_SLICED), new_plane()
    for plane in (sliced, whole):
        for replica_id in "ABCDE":
            report(plane, replica_id, keys(2, salt=3))
    for salt in range(4, 20):
        request = chain_question(keys(8, salt=salt))
        answer, pauses = finish(sliced.lookup_route_steps(request))

        assert pauses == [None] * 3
        assert answer.reason_code == "AFFINITY_HINT"
        assert answer == whole.answer_sent(request)


def test_what_is_reported_between_slices_counts_for_those_to_come() -> None:
    """A replica that comes to hold all of it too late has matched nothing; the other goes on."""
    plane = new_plane(lookup=MATCH_SLICED)
    set_policy(plane, minimum_matched_tokens=0, routing_floor_score=0.0)
    report(plane, "A", CHAIN[:4])
    steps = plane.lookup_route_steps(chain_question(CHAIN))
    next(steps)
    report(plane, "A", CHAIN[4:])
    report(plane, "B", CHAIN)

    answer, _ = finish(steps)

    assert [(r.replica_id, r.matched_blocks) for r in answer.replicas] == [("A", 8)]


@pytest.mark.parametrize("held", [0, 8])
@pytest.mark.parametrize("late_after", [1, 2])
def test_time_that_runs_out_between_slices_is_a_timeout(held: int, late_after: int) -> None:
    """While a chain is matched, and while it is hashed because nobody holds it."""
    plane = new_plane(lookup=MATCH_SLICED)
    report(plane, "A", CHAIN[:held] or keys(1, salt=3))
    steps = plane.lookup_route_steps(chain_question(CHAIN), NOW_NS + NS_PER_MS)
    for _ in range(late_after):
        next(steps)
    plane.clock.set_ns(NOW_NS + NS_PER_MS)

    answer, _ = finish(steps)

    assert answer.reason_code == "TIMEOUT"
    assert answer.replicas == ()


def test_caller_of_a_long_chain_that_has_gone_is_a_timeout() -> None:
    """Told so between two slices, the lookup ends there."""
    plane = new_plane(lookup=MATCH_SLICED)
    report(plane, "A", CHAIN)
    steps = plane.lookup_route_steps(chain_question(CHAIN))
    next(steps)
    with pytest.raises(StopIteration) as ended:
        steps.send(True)  # noqa: FBT003 - the generator's protocol

    assert ended.value.value.reason_code == "TIMEOUT"


@pytest.mark.parametrize(("blocks", "matched", "cut"), [(4, 4, 0), (5, 5, 0), (6, 5, 1), (8, 5, 1)])
def test_the_end_of_an_overlong_chain_is_ignored(blocks: int, matched: int, cut: int) -> None:
    """What stands before it is matched as ever, and the lookup is counted."""
    plane = new_plane(lookup=LookupSettings(chain_blocks_max=5))
    report(plane, "A", CHAIN)

    answer = plane.lookup_route(chain_question(CHAIN[:blocks]))

    assert [(r.matched_blocks, r.matched_tokens) for r in answer.replicas] == [
        (matched, matched * 16)
    ]
    assert plane.chains_cut == cut


def test_the_end_of_an_overlong_prompt_is_ignored() -> None:
    """A chain of token ids is cut like one that was sent."""
    plane = new_plane(lookup=LookupSettings(slice_blocks=2, chain_blocks_max=5))
    tokens = range(1, 16 * 8 + 1)
    report(plane, "A", chain(tokens, 16))

    answer, _ = finish(plane.lookup_route_steps(question(token_ids=tokens)))

    assert [(r.matched_blocks, r.matched_tokens) for r in answer.replicas] == [(5, 80)]
    assert plane.chains_cut == 1


def test_a_prompt_is_hashed_to_its_end_where_its_last_hash_counts() -> None:
    """An exact match of a prompt is never cut."""
    plane = new_plane(lookup=LookupSettings(slice_blocks=2, chain_blocks_max=5))
    set_policy(plane, strategy=Strategy(enable_chain_matching=False))
    tokens = range(1, 16 * 8 + 1)
    report(plane, "A", chain(tokens, 16))

    answer, _ = finish(plane.lookup_route_steps(question(token_ids=tokens)))

    assert [(r.matched_blocks, r.matched_tokens) for r in answer.replicas] == [(1, 128)]
    assert plane.chains_cut == 0


def test_caller_that_has_gone_is_a_timeout() -> None:
    """Told so at a pause, the lookup ends there and is counted once."""
    recorder = Recorder()
    plane = new_plane(lookup=SLICED, recorder=recorder)
    steps = plane.lookup_route_steps(question(token_ids=range(1, 1_000)))
    next(steps)
    with pytest.raises(StopIteration) as ended:
        steps.send(True)  # noqa: FBT003 - the generator's protocol

    assert ended.value.value.reason_code == "TIMEOUT"
    assert recorder.lookups == {(MODEL, "TIMEOUT", False): 1}


def test_latency_is_whole_microseconds() -> None:
    """The answer carries the time inside, rounded down."""
    plane = new_plane(lookup=SLICED)
    steps = plane.lookup_route_steps(question(token_ids=range(1, 100)))
    next(steps)
    plane.clock.advance_ns(2_999)

    assert finish(steps)[0].lookup_latency_us == 2


def test_trace_shows_every_factor_and_gate() -> None:
    """The record holds the candidates, their factors and what each gate let through."""
    plane = new_plane()
    report(plane, "A", CHAIN)
    report(plane, "B", CHAIN[:2])
    report(plane, "C", keys(1, salt=1))
    trace = RouteTrace()

    answer = plane.lookup_route(chain_question(CHAIN), trace=trace)

    assert answer == plane.lookup_route(chain_question(CHAIN))
    assert trace.serving_count == 3
    assert {candidate[0] for candidate in trace.candidates} == {"A", "B"}
    assert trace.factors["A"].distinguishing_power == pytest.approx(2 / 3)
    assert trace.factors["A"].score == answer.replicas[0].score
    assert [replica.replica_id for replica in trace.ranked] == ["A", "B"]
    assert [(g.gate, g.replicas_before, g.replicas_after) for g in trace.gates] == [
        (Gate.MINIMUM_PREFIX_TOKENS, 2, 2),
        (Gate.MINIMUM_MATCHED_TOKENS, 2, 1),
        (Gate.ROUTING_FLOOR_SCORE, 1, 1),
    ]
    assert trace.resolved is not None
    assert trace.policy == plane.policies.resolved(TENANT)


@pytest.mark.parametrize(
    ("request_fields", "deadline_ns", "gate", "reason"),
    [
        ({"tenant_id": PROBE_TENANT_ID}, None, Gate.RESERVED_TENANT, "NO_HINT"),
        ({}, 0, Gate.DEADLINE, "TIMEOUT"),
        ({"block_token_counts": [16]}, None, Gate.INPUT, "NO_HINT"),
        ({"prefix_hash": b"novel"}, None, Gate.AFFINITY, "AFFINITY_HINT"),
    ],
)
def test_trace_names_the_gate_that_answered(
    request_fields: dict[str, object], deadline_ns: int | None, gate: Gate, reason: str
) -> None:
    """The last record says which point of the lookup made the answer."""
    plane = new_plane()
    report(plane, "A", CHAIN)
    trace = RouteTrace()

    answer = plane.lookup_route(question(**request_fields), deadline_ns, trace)

    assert answer.reason_code == reason
    assert (trace.gates[-1].gate, trace.gates[-1].reason_code) == (gate, reason)


def test_trace_explains_warm_replicas() -> None:
    """TENANT_HOT has factors of its own."""
    plane = new_plane()
    update = StateUpdate(tenant_id=TENANT, model_id=MODEL, replica_id="A", hash_scheme=SCHEME)
    update.add_prefix(b"x", 16)
    update.stats = StatsReport(hit_rate=0.5)
    plane.report(update)
    trace = RouteTrace()

    answer = plane.lookup_route(question(prefix_hash=b"novel"), trace=trace)

    assert answer.reason_code == "TENANT_HOT"
    assert trace.warm_factors["A"].score == answer.replicas[0].score
