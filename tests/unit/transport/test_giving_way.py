"""The process is eased for as long as anybody needs it, and no longer."""

import gc
import sys
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from inferencecache.transport.giving_way import collections_paused, giving_way


def test_collections_rest_and_go_on() -> None:
    """Also after a failure; where they were off, they stay off. Turns are short meanwhile."""
    interval_s = sys.getswitchinterval()
    assert not giving_way(gc.isenabled)
    assert giving_way(sys.getswitchinterval) < interval_s
    assert gc.isenabled()
    assert sys.getswitchinterval() == interval_s
    with pytest.raises(ZeroDivisionError):
        giving_way(lambda: 1 // 0)
    assert gc.isenabled()
    gc.disable()
    try:
        giving_way(gc.isenabled)
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("first_ends_first", [True, False])
def test_pieces_that_overlap_end_in_any_order(*, first_ends_first: bool) -> None:
    """Collections rest until the last has ended, then everything is as it was."""
    first, second = ExitStack(), ExitStack()
    first.enter_context(collections_paused)
    second.enter_context(collections_paused)
    endings = [first, second] if first_ends_first else [second, first]
    endings[0].close()
    assert not gc.isenabled()
    endings[1].close()
    assert gc.isenabled()


def test_work_within_work_leaves_the_interval_as_it_was() -> None:
    """As when a page is shown while a push is read."""
    interval_s = sys.getswitchinterval()

    def nested() -> tuple[float, bool]:
        giving_way(lambda: None)
        return sys.getswitchinterval(), gc.isenabled()

    eased: Callable[[], tuple[float, bool]] = nested
    within_s, collects = giving_way(eased)
    assert within_s < interval_s
    assert not collects
    assert sys.getswitchinterval() == interval_s
