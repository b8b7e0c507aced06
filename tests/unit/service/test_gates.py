"""The policy gates: what passes each, and that leaving out the open ones changes nothing."""

import pytest

from inferencecache.policy import (
    CachePolicy,
    PolicySnapshot,
    PolicyStore,
    ResolvedPolicy,
    Strategy,
)
from inferencecache.ranking import RankedReplica, round_float32
from inferencecache.service.gates import GATES, Gate, active_gates
from inferencecache.settings.policy import PolicySettings


def ranked(score: float = 1.0, tokens: int = 64) -> RankedReplica:
    """Return a replica with the given score and depth."""
    return RankedReplica("r", score, tokens, 1.0, 1, 1)


def policy(**members: object) -> ResolvedPolicy:
    """Return what applies under a policy."""
    store = PolicyStore(PolicySettings(), 1)
    pushed = CachePolicy(namespace="a", **members)  # type: ignore[arg-type] # of the test's own
    store.replace(PolicySnapshot(policies=(pushed,)))
    return store.resolved("a")


def keep(
    name: Gate, replicas: list[RankedReplica], applied: ResolvedPolicy, tokens: int = 0
) -> list[RankedReplica]:
    """Return what passes one gate."""
    (gate,) = {gate for gates in GATES.values() for gate in gates if gate.name is name}
    return gate.keep(replicas, applied, tokens)


@pytest.mark.parametrize(
    ("floor", "kept"), [(0, [100, 64, 1]), (1, [100, 64, 1]), (64, [100, 64]), (65, [100])]
)
def test_the_token_floor_drops_short_matches(floor: int, kept: list[int]) -> None:
    """Matches below the floor go, the rest keep their order; 0 keeps all."""
    rows = [ranked(tokens=tokens) for tokens in (100, 64, 1)]

    left = keep(Gate.MINIMUM_MATCHED_TOKENS, rows, policy(minimum_matched_tokens=floor))

    assert [replica.matched_tokens for replica in left] == kept


@pytest.mark.parametrize(
    ("score", "floor", "passes"),
    [
        (round_float32([0.1])[0], 0.1, True),
        (round_float32([0.7])[0], 0.7, True),
        (0.0999, 0.1, False),
        (0.0, 0.0, True),
        (0.0, -1.0, True),
    ],
)
def test_the_score_floor_compares_as_float32(score: float, floor: float, passes: bool) -> None:  # noqa: FBT001 - a table column
    """A score equal to the floor in single precision reaches it; 0 or less accepts any."""
    rows = [ranked(score=score), ranked(score=0.0)]

    left = keep(Gate.ROUTING_FLOOR_SCORE, rows, policy(routing_floor_score=floor))

    assert left == (rows if passes else [])


@pytest.mark.parametrize("tenant_hot", [False, True])
@pytest.mark.parametrize("floors", [(0, 0, 0.0), (1, 0, 0.0), (0, 9, 0.0), (0, 0, 1.0)])
def test_a_gate_is_open_where_everything_passes(
    floors: tuple[int, int, float],
    tenant_hot: bool,  # noqa: FBT001 - a table column
) -> None:
    """So a lookup may leave it out; the others take away what they are there for."""
    matched, prefix, score = floors
    applied = policy(
        minimum_matched_tokens=matched,
        minimum_prefix_tokens=prefix,
        routing_floor_score=score,
        strategy=Strategy(enable_tenant_hot=tenant_hot),
    )
    rows = [ranked(score=0.5, tokens=0), ranked(score=0.0, tokens=0)]

    for reason_code, gates in GATES.items():
        for gate in gates:
            passes = gate.keep(rows, applied, 5) == rows
            assert (gate not in active_gates(applied)[reason_code]) == passes
