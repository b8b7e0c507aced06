"""The order of producers, and what cannot be put in order."""

from collections.abc import Callable

import pytest
from pipeline_rig import Making, Scoring, key, pipeline

from inferencecache.clock import NS_PER_MS
from inferencecache.errors import ConfigError
from inferencecache.picker.pipeline import AttributeKey, Pipeline

A, B, C = key("a"), key("b"), key("c")


def order(built: Pipeline) -> list[str]:
    """Return the names of the producers of *built*."""
    return [step.name for step in built.producers]


def test_a_producer_comes_behind_those_it_needs() -> None:
    """Whatever the order of the configuration; what is optional counts as well."""
    built = pipeline(
        last=Making(C, uses=(B,)), middle=Making(B, needs=(A,)), first=Making(A), other=Making()
    )
    assert order(built) == ["first", "middle", "last", "other"]
    assert [sorted(step.after) for step in built.producers] == [[], [0], [1], []]


def test_free_producers_keep_the_order_of_the_configuration() -> None:
    """Two starts with the same file do the same."""
    assert order(pipeline(z=Making(A), y=Making(B), x=Making(C))) == ["z", "y", "x"]


def test_a_circle_names_its_plugins() -> None:
    """And nobody who merely hangs on it."""
    with pytest.raises(ConfigError) as caught:
        pipeline(
            hanger=Making(key("h"), needs=(A,)),
            one=Making(A, needs=(C,)),
            two=Making(B, needs=(A,)),
            three=Making(C, uses=(B,)),
        )
    assert caught.value.value == "one needs three needs two needs one"


def test_a_producer_cannot_need_itself() -> None:
    """That is the smallest circle."""
    with pytest.raises(ConfigError, match="one needs one"):
        pipeline(one=Making(A, needs=(A,)))


def test_a_key_has_one_type() -> None:
    """Both plugins and both types are named."""
    scorer = Scoring()
    scorer.consumes = (AttributeKey("a", str),)
    with pytest.raises(ConfigError) as caught:
        pipeline(maker=Making(A), reader=scorer)
    assert caught.value.field == "plugins.reader"
    assert caught.value.value == "a as str"
    assert caught.value.allowed == "int, as maker has it"


def test_a_key_has_one_producer() -> None:
    """Which of the two came last would depend on chance."""
    with pytest.raises(ConfigError, match="a key that one does not produce as well"):
        pipeline(one=Making(A), two=Making(A))


def test_a_needed_key_has_a_producer() -> None:
    """The plugin, the key and the keys there are stand in the error."""
    with pytest.raises(ConfigError) as caught:
        pipeline(one=Making(B), two=Making(C, needs=(A,)))
    assert caught.value.field == "plugins.two"
    assert caught.value.value == "a"
    assert caught.value.allowed == "a key that some plugin produces: b, c"


def test_an_optional_key_may_have_none() -> None:
    """The plugin works without it."""
    assert order(pipeline(one=Making(B, uses=(A,)))) == ["one"]


@pytest.mark.parametrize("own", [lambda: "1s", lambda: 1 / 0])
def test_a_limit_that_is_none_is_named(own: Callable[[], object]) -> None:
    """At start, not at the first Pick."""
    aware = Making(A)
    aware.produce_timeout_ns = own
    with pytest.raises(ConfigError, match=r"plugins.aware.produce_timeout_ns"):
        pipeline(aware=aware)


@pytest.mark.parametrize(("own_ns", "expected_ms"), [(50 * NS_PER_MS, 50), (0, 400), (-1, 400)])
def test_a_producer_may_have_a_limit_of_its_own(own_ns: int, expected_ms: int) -> None:
    """Nothing, 0 and less take the default."""
    aware = Making(A)
    aware.produce_timeout_ns = lambda: own_ns
    built = pipeline(aware=aware, unaware=Making(B))
    limits_ms = {step.name: step.timeout_ns // NS_PER_MS for step in built.producers}
    assert limits_ms == {"aware": expected_ms, "unaware": 400}
