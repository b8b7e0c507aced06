"""Numbers of bodies and answers: read as engines read them, none of them slowly."""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from processor_time import least_s

from inferencecache.gateway import AnswerScan
from inferencecache.picker.prompt.template_input import _arguments
from inferencecache.picker.request.envelope import read_value

NUMBERS = 20_000
SLOWER_AT_MOST = 20
"""How much longer large numbers may take; the decoder's own way takes 200 times as long."""


def scan(document: bytes) -> None:
    """Read an answer."""
    answer = AnswerScan("application/json", 1_048_576)
    answer.feed(document)
    answer.finish()


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("1e308", 1e308),
        ("-1.7976931348623157E+308", -1.7976931348623157e308),
        ("1e400", inf),
        ("5e-324", 5e-324),
        ("1e-400", 0.0),
        ("0.1", 0.1),
        ("1.0", 1.0),
        ("9007199254740993.0", 9007199254740992.0),
    ],
)
def test_numbers_are_those_of_engines(written: str, number: float) -> None:
    """What is too large is infinite, as Python reads it."""
    read = read_value(Raw(f"[{written}]".encode()), Any)
    assert read == [number]
    assert isinstance(read[0], float)


@pytest.mark.parametrize(
    "reading",
    [lambda document: read_value(Raw(document), Any), lambda text: _arguments(text.decode()), scan],
    ids=["body", "arguments", "answer"],
)
def test_large_numbers_take_no_longer_than_others(reading: Callable[[bytes], object]) -> None:
    """Nobody else gets his turn meanwhile, and a body may be full of them."""

    def prepared(written: str) -> Callable[[], object]:
        return partial(reading, msgspec.json.encode([Raw(written.encode())] * NUMBERS))

    usual_s, large_s = (least_s(partial(prepared, each)) for each in ("1.5e50", "1.5e300"))

    assert large_s < SLOWER_AT_MOST * usual_s
