"""Values of ours become JSON for pages."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from inferencecache.transport.http_control_json import json_text


class Colour(StrEnum):
    """A word."""

    RED = "red"


class Point(NamedTuple):
    """A named tuple."""

    x_ns: int
    t2_rate: float


class Kept(Struct, frozen=True, kw_only=True):
    """A struct."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class Whole:
    """A bit of everything."""

    colour: Colour
    point_of_it: Point
    last_kept: Kept
    names: frozenset[str]
    by_name: dict[Colour, tuple[int, ...]]
    nothing: None = None


def test_keys_are_in_camel_case_and_nothing_is_left_out() -> None:
    """Sets are sorted, so that a page does not change by itself."""
    value = Whole(Colour.RED, Point(1, 0.5), Kept(at_ns=7), frozenset("cab"), {Colour.RED: (1, 2)})
    text = json_text([value])
    assert text.endswith("]\n")
    assert json.loads(text) == [
        {
            "colour": "red",
            "pointOfIt": {"xNs": 1, "t2Rate": 0.5},
            "lastKept": {"atNs": 7},
            "names": ["a", "b", "c"],
            "byName": {"red": [1, 2]},
            "nothing": None,
        }
    ]
