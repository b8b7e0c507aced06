"""The age order is right for stamps that are equal, old, or out of order."""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferencecache.index import age_order, growing_map
from inferencecache.index.age_order import AgeOrder

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "discard", "advance", "oldest"]),
        st.integers(0, 8),
        st.integers(-3, 3),
    ),
    max_size=60,
)


@pytest.mark.parametrize("many", [2, 4_096])
@given(steps=STEPS)
def test_order_agrees_with_a_plain_list(many: int, steps: list[tuple[str, int, int]]) -> None:
    """Oldest stamp first, among equal stamps the largest key first, be they few or many."""
    with (
        patch.object(age_order, "PLAIN_ITEMS_MAX", many),
        patch.object(growing_map, "SEGMENT_KEYS", many),
    ):
        compare_with_a_plain_list(steps)


def compare_with_a_plain_list(steps: list[tuple[str, int, int]]) -> None:
    """Take the steps in both and compare after each."""
    order: AgeOrder[int] = AgeOrder(lambda item: item)
    plain: list[tuple[int, int]] = []
    for action, item, seen_ns in steps:
        held = next((entry for entry in plain if entry[0] == item), None)
        if action == "add" and held is None:
            order.add(item, seen_ns)
            plain.append((item, seen_ns))
        elif action == "discard" and held is not None:
            order.discard(item, held[1])
            plain.remove(held)
        elif action == "advance" and held is not None and order.advance(held[1], seen_ns, item):
            assert seen_ns > max(entry[1] for entry in plain)
            plain.remove(held)
            plain.append((item, seen_ns))
        oldest_ns = min((entry[1] for entry in plain), default=None)
        tied = [entry[0] for entry in plain if entry[1] == oldest_ns]

        assert order.oldest_ns() == oldest_ns
        assert order.oldest() == max(tied, default=None)
        assert sorted(order.items()) == sorted(entry[0] for entry in plain)
        assert bool(order) == bool(plain)


def test_only_an_item_alone_at_its_stamp_advances() -> None:
    """Two of a stamp stay, as does one that would not become the newest."""
    order: AgeOrder[str] = AgeOrder({"a": 1, "b": 2, "c": 3}.__getitem__)
    for item, seen_ns in (("a", 10), ("b", 10), ("c", 30)):
        order.add(item, seen_ns)

    assert not order.advance(10, 40, 5)
    order.discard("b", 10)
    assert not order.advance(10, 30, 5)
    assert order.oldest() == "a"
    assert order.advance(10, 40, 5)
    assert (order.oldest(), order.oldest_ns()) == ("c", 30)
    order.discard("c", 30)
    assert (order.oldest(), order.oldest_ns()) == ("a", 40)
