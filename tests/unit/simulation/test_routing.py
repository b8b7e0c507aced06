"""The gateway's rule: deepest match, unless overloaded, else round robin."""

import pytest

from inferencecache.simulation import LoadWindow, Router, RouteSource, seeded_order


def router(replica_count: int = 3, factor: float = 1.5, window: int = 100) -> Router:
    """Return a router in plain turn order."""
    return Router(range(replica_count), LoadWindow(replica_count, factor, window), 0.1)


def test_without_a_hint_replicas_take_turns() -> None:
    """Round robin visits every replica in order."""
    gateway = router(factor=0)

    routes = [gateway.route({}, 100) for _ in range(4)]

    assert [route.replica for route in routes] == [0, 1, 2, 0]
    assert {route.source for route in routes} == {RouteSource.ROUND_ROBIN}


def test_follows_the_deepest_match() -> None:
    """More matched tokens win over the order of the answer."""
    route = router(factor=0).route({0: 512, 2: 1_024}, 2_000)

    assert (route.replica, route.source) == (2, RouteSource.HINT)


def test_equal_matches_go_to_the_less_loaded() -> None:
    """Load breaks a tie, then turn order."""
    gateway = router(factor=0)
    gateway.route({0: 512}, 1_000)

    assert gateway.route({0: 512, 1: 512, 2: 512}, 10).replica == 1


def test_skips_an_overloaded_replica_for_the_next_hint() -> None:
    """A replica with three times the mean is passed over for a shallower match."""
    gateway = router()
    gateway.route({0: 512}, 1_000)

    route = gateway.route({0: 1_024, 1: 512}, 1_000)

    assert (route.replica, route.source) == (1, RouteSource.HINT)


def test_all_hinted_overloaded_goes_round_robin_past_them() -> None:
    """The turn skips overloaded replicas as well."""
    gateway = router()
    gateway.route({0: 512}, 1_000)

    route = gateway.route({0: 1_024}, 1_000)

    assert (route.replica, route.source) == (1, RouteSource.OVERLOAD)


def test_weak_match_goes_round_robin() -> None:
    """A match below a tenth of the prompt is no reason to go where it lies."""
    gateway = router(factor=0)
    weak = gateway.route({2: 512}, 5_121)
    strong = gateway.route({2: 512}, 5_120)

    assert (weak.replica, weak.source) == (0, RouteSource.WEAK)
    assert (strong.replica, strong.source) == (2, RouteSource.HINT)


def test_affinity_is_followed() -> None:
    """A hint without matched tokens is not weak."""
    route = router().route({2: 0}, 5_000)

    assert (route.replica, route.source) == (2, RouteSource.HINT)


def test_load_at_the_factor_is_not_overload() -> None:
    """1.5 times the mean is allowed, more is not: 900 of (900, 450, 450) against 600."""
    load = LoadWindow(3, 1.5, 100)
    for replica, tokens in enumerate((900, 450, 450)):
        load.give(replica, tokens)
    at_the_factor = load.is_overloaded(0)
    load.give(0, 10)

    assert not at_the_factor
    assert load.is_overloaded(0)


def test_window_forgets() -> None:
    """Only the last requests count."""
    load = LoadWindow(2, 1.5, 2)
    for replica, tokens in ((0, 700), (1, 10), (1, 20)):
        load.give(replica, tokens)

    assert load.tokens == [0, 30]


def test_factor_below_one_still_routes() -> None:
    """With everybody above the factor the least loaded takes the request."""
    gateway = router(replica_count=2, factor=0.1)
    gateway.route({}, 100)
    gateway.route({}, 50)

    assert gateway.route({}, 10).replica == 1


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_seeded_order_is_a_permutation(seed: int) -> None:
    """Each seed names one order of all replicas."""
    assert sorted(seeded_order(8, seed)) == list(range(8))
    assert seeded_order(8, seed) == seeded_order(8, seed)


def test_seeds_differ() -> None:
    """Different seeds give different orders."""
    assert len({tuple(seeded_order(8, seed)) for seed in range(20)}) > 15
