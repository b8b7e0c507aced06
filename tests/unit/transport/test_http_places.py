"""Connections are shared among peers."""

from hypothesis import given
from hypothesis import strategies as st

from inferencecache.transport.http_places import Places


class Held:
    """A connection that remembers whether it was closed."""

    def __init__(self, peer: str, *, is_busy: bool = False) -> None:
        self.peer = peer
        self.is_busy = is_busy
        self.is_ended = False

    def end(self) -> None:
        """Take note."""
        self.is_ended = True

    def end_certified(self) -> bool:
        """Say that nobody has shown a certificate."""
        return False


def test_who_is_alone_may_have_them_all() -> None:
    """But no more than there are."""
    places = Places(3)
    held = [Held("a") for _ in range(3)]
    assert all(map(places.take, held))
    assert not places.take(Held("a"))
    assert not any(place.is_ended for place in held)


def test_a_newcomer_gets_the_oldest_idle_one_of_who_has_most() -> None:
    """What is busy goes on, what others hold stays."""
    places = Places(5)
    first, second, third = (Held("a", is_busy=busy) for busy in (True, False, False))
    others = [Held("b"), Held("b")]
    assert all(map(places.take, [first, *others, second, third]))
    newcomer = Held("c")
    assert places.take(newcomer)
    assert [place.is_ended for place in (first, second, third, *others)] == [
        False,
        True,
        False,
        False,
        False,
    ]
    assert len(places) == 5


def test_busy_ones_are_never_taken_away() -> None:
    """Whoever comes then has to wait."""
    places = Places(2)
    assert all(map(places.take, [Held("a", is_busy=True), Held("a", is_busy=True)]))
    assert not places.take(Held("b"))


def test_equals_take_nothing_from_one_another() -> None:
    """Else two peers would close each other's connections for ever."""
    places = Places(3)
    assert all(map(places.take, [Held("a"), Held("a"), Held("b")]))
    assert not places.take(Held("b"))


def test_whoever_leaves_twice_leaves_once() -> None:
    """A connection that was ended for another still tells when it is gone."""
    places = Places(1)
    place = Held("a")
    assert places.take(place)
    for _ in range(2):
        places.leave(place)
    assert len(places) == 0
    assert list(places) == []


@given(st.integers(1, 5), st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40))
def test_the_number_is_never_exceeded(places_max: int, coming: list[tuple[str, bool]]) -> None:
    """And who is in has not been ended, whoever comes in whatever order."""
    places = Places(places_max)
    for peer, is_busy in coming:
        place = Held(peer, is_busy=is_busy)
        before = len(places)
        took = places.take(place)
        assert took or before == places_max
        assert len(places) <= places_max
        assert len(list(places)) == len(places)
        assert not any(each.is_ended for each in places if isinstance(each, Held))
