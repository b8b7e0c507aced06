"""Parameters of plugins: what fits, and what is said of what does not."""

from enum import StrEnum
from typing import Annotated, Literal

import pytest
from msgspec import Meta, field

from inferencecache.errors import ConfigError
from inferencecache.picker.pipeline.parameters import PluginParameters, nearest, read_parameters


class Side(StrEnum):
    """A choice."""

    LEFT = "left"
    RIGHT = "right"


class Inner(PluginParameters, frozen=True):
    """A part of parameters."""

    size: Annotated[int, Meta(ge=1)] = 1
    side: Side | None = None


class Model(PluginParameters, frozen=True, kw_only=True):
    """Parameters of a test."""

    lru_size: Annotated[int, Meta(ge=1)] = 4
    mode: Literal["a", "b"] = "a"
    level: Literal[1, 2] = 1
    parts: tuple[Inner, ...] = ()
    sides: Annotated[tuple[Side, ...], Meta(max_length=4)] = ()
    names: dict[str, str] = field(default_factory=dict)
    needed: str


def test_names_are_in_camel_case() -> None:
    """As configurations write them."""
    read = read_parameters({"lruSize": 7, "needed": "x"}, Model, "p")
    assert (read.lru_size, read.needed, read.mode) == (7, "x", "a")


@pytest.mark.parametrize(
    ("given", "field", "value", "allowed"),
    [
        ({"needed": "x", "lruSize": 0}, "p.lruSize", 0, "int >= 1"),
        ({"needed": "x", "lruSize": "z"}, "p.lruSize", "z", "int, got str"),
        ({"needed": "x", "mode": "c"}, "p.mode", "c", "one of a, b"),
        ({"needed": "x", "level": 3}, "p.level", 3, "one of 1, 2"),
        (
            {"needed": "x", "parts": [{}, {"side": "up"}]},
            "p.parts[1].side",
            "up",
            "one of left, right",
        ),
        ({"needed": "x", "sides": ["up"]}, "p.sides[0]", "up", "one of left, right"),
        ({"needed": "x", "parts": [{}, {"size": -1}]}, "p.parts[1].size", -1, "int >= 1"),
        ({"lruSize": 1}, "p.needed", None, "a value"),
        ({"needed": "x", "names": {"a": 1}}, "p.names[...]", {"a": 1}, "str, got int"),
        ({"needed": "x", "parts": [{"sice": 1}]}, "p.parts[0]", "sice", "no such parameter"),
        (
            {"needed": "x", "lruSizes": 1},
            "p",
            "lruSizes",
            "lruSize, which is nearest; one of level, lruSize, mode, names, needed, parts, sides",
        ),
    ],
)
def test_what_does_not_fit_is_named(
    given: dict[str, object], field: str, value: object, allowed: str
) -> None:
    """Field, value and what would be right."""
    with pytest.raises(ConfigError) as caught:
        read_parameters(given, Model, "p")
    assert (caught.value.field, caught.value.value) == (field, value)
    assert caught.value.allowed == allowed


def test_the_nearest_name_is_told_if_one_is_near() -> None:
    """A slip of the finger is found, a wild guess is not."""
    assert nearest("queue-scorr", ["queue-scorer", "other"]).startswith("queue-scorer, which")
    assert nearest("zzz", ["queue-scorer"]) == "one of queue-scorer"
    assert nearest("zzz", []) == "nothing: there are none"
