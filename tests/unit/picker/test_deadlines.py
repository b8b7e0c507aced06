"""Moments by key, against a plain table."""

from hypothesis import given
from hypothesis import strategies as st

from inferencecache.picker.bodies.deadlines import Deadlines
from inferencecache.picker.bodies.used_ids import UsedIds

STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "drop", "due"]), st.integers(0, 5), st.integers(0, 50))
)


@given(STEPS)
def test_deadlines_are_a_table_of_moments(steps: list[tuple[str, int, int]]) -> None:
    """Moved nearer or further, dropped and set again: each is due once, in its time."""
    deadlines = Deadlines()
    plain: dict[int, int] = {}
    for step, key, moment in steps:
        if step == "set":
            deadlines.set(key, moment)
            plain[key] = moment
        elif step == "drop":
            deadlines.drop(key)
            plain.pop(key, None)
        else:
            expected = {name for name, at in plain.items() if at <= moment}
            assert set(deadlines.due(moment)) == expected
            plain = {name: at for name, at in plain.items() if at > moment}
        assert len(deadlines) == len(plain)


def test_dropped_keys_take_no_room_for_long() -> None:
    """A hundred thousand that were dropped before their moment leave a small heap."""
    deadlines = Deadlines()
    for key in range(100_000):
        deadlines.set(key, 10**9)
        deadlines.drop(key)
    assert len(deadlines._heap) < 2_000
    assert not deadlines._queued


def test_used_ids_are_bounded() -> None:
    """The oldest goes when there are too many, and each goes in time."""
    used = UsedIds(count_max=2, ttl_ns=10)
    for number, now_ns in ((1, 0), (2, 1), (3, 2)):
        used.add(number, now_ns)
    assert [number in used for number in (1, 2, 3)] == [False, True, True]
    used.expire(11)
    assert [number in used for number in (2, 3)] == [False, True]
    used.expire(12)
    assert len(used) == 0
