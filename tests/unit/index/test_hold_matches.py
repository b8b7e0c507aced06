"""Holds of neighbouring runs become one only where nothing told of them differs."""

import pytest

from inferencecache.index.run import Hold, Incarnation


def hold(**fields: object) -> Hold:
    """Return a hold as its run has it, but for *fields*; of the run nothing is looked at."""
    made = Hold(Incarnation("A"), None, 10, 1)  # type: ignore[arg-type] # no run is needed
    made.credits, made.halvings = 3, 2
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_alike_holds_match() -> None:
    """Their places in orders of age and of reports do not count."""
    assert hold(order=1).matches(hold(order=2))


@pytest.mark.parametrize(
    "fields",
    [
        {"last_seen_ns": 11},
        {"tier": 2},
        {"credits": 4},
        {"halvings": 3},
        {"token_counts": range(16, 32, 16)},
    ],
)
def test_holds_that_differ_do_not(fields: dict[str, object]) -> None:
    """Whichever of the two is the other one."""
    assert not hold(**fields).matches(hold())
    assert not hold().matches(hold(**fields))


def test_without_uses_it_does_not_matter_how_often_they_were_halved() -> None:
    """Half of nothing is nothing."""
    assert hold(credits=0, halvings=1).matches(hold(credits=0, halvings=2))
    assert not hold(credits=0, halvings=2).matches(hold(credits=1, halvings=2))
