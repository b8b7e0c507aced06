"""Bodies made to keep their reader busy: others wait for it meanwhile."""

import tracemalloc
from collections.abc import Callable
from functools import partial

import pytest
from processor_time import least_s
from work_counter import lines_run

from inferencecache.picker.request import BadBodyError, parse_body
from inferencecache.settings.picker import PickerParseSettings

PARSE = PickerParseSettings()
MANY = 50_000
SLOWER_AT_MOST = 1.6
"""Going from bracket to bracket takes more than twice as long."""

LINES_MAX = MANY // 10
"""Whatever goes from part to part runs at least one for each."""


def inside(item: bytes) -> bytes:
    """Return a body with *item* many times in a list beside its model."""
    return b'{"list":[' + b",".join([item] * MANY) + b'],"model":"m"}'


def read(data: bytes) -> str:
    """Return what model *data* names, or what is wrong with it."""
    try:
        return parse_body(data, PARSE).model
    except BadBodyError as error:
        return error.flaw.value


HOSTILE: dict[str, tuple[bytes, str]] = {
    "model keys": (inside(b'{"model":1}'), "m"),
    "model keys and spaces": (inside(b'{ "model" :1}'), "m"),
    "escaped model keys": (inside(b'{"\\u006dodel":1}'), "m"),
    "nested model keys": (inside(b'{"model":{"model":[{"model":1}]}}'), "m"),
    "model keys side by side": (b'{"a":{' + b'"model":1,' * MANY + b'"b":1},"model":"m"}', "m"),
    "models of the top level": (b"{" + b'"model":"m",' * MANY + b'"b":1}', "model_too_often"),
    "texts that say model": (inside(b'"model"'), "m"),
    "backslashes without end": (b'{"model":"m","a":"' + b"\\" * 2_000_000, "malformed"),
    "backslashes and brackets": (
        b'{"model":"m","a":["' + b"\\\\" * 1_000_000 + b'"' + b",[]" * MANY + b"]}",
        "m",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_body_is_read_part_by_part(name: str) -> None:
    """Whatever it is full of, its parts are looked at many at a time."""
    data, answer = HOSTILE[name]
    assert read(data) == answer
    assert lines_run(lambda: read(data)) < LINES_MAX


def test_a_few_keys_make_no_bracket_dear() -> None:
    """Of very many lists all are counted in one go, whether or not a key stands among them."""
    lists = b"[]," * 20_000
    without, with_keys = (
        b'{"list":[' + (lists + item) * 60 + b'1],"model":"m","model":"m"}'
        for item in (b"", b'{"model":1},')
    )
    assert read(with_keys) == read(without) == "m"
    taken_s = least_s(lambda: partial(read, with_keys))
    assert taken_s < SLOWER_AT_MOST * least_s(lambda: partial(read, without))


def test_a_long_model_takes_no_memory_beside_itself() -> None:
    """Escapes are gone through, not remembered."""
    data = b'{"model":"' + b"\\u006d" * 200_000 + b'"}'
    taken = most_held(lambda: read(data))
    assert read(data) == "model_too_long"
    assert taken < 5 * len(data)


def most_held(call: Callable[[], object]) -> int:
    """Return how many bytes *call* held at most."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
