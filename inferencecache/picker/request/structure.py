"""Brackets, digits and text of a JSON document, without building any of its values.

Rules of this file: linear time whatever the input; memory for one block, not for the document.

Theory of operation: only strings can hold backslashes. Take out escaped backslashes, then escaped
quotes, and each quote left begins or ends a string; delete everything but quotes and brackets, and
every other part between quotes stands outside strings. All of that are single calls that run at the
speed of memory. Two adjacent quotes change nothing for what stands around them and go first.
"""

import codecs
import re
from collections.abc import Iterator
from typing import Final

_BLOCK_BYTES: Final = 1_048_576
TO_SQUARE: Final = bytes.maketrans(b"{}", b"[]")
MARK: Final = b"\x01"
"""A byte that no JSON document holds; one that was put in outside strings stays where it is."""

NO_BRACKETS_NOR_MARKS: Final = bytes(byte for byte in range(256) if byte not in b'"[]{}' + MARK)
_ESCAPES: Final = b"\\/bfnrtu"
_NO_MARKS_NOR_ESCAPES: Final = bytes(byte for byte in NO_BRACKETS_NOR_MARKS if byte not in _ESCAPES)
_RUNS: Final = re.compile(rb"\[+|\]+")
_OPEN: Final = ord("[")
_WORTH_PEELING: Final = 0.9
_SIBLING: Final = re.compile(rb'(?:(?<=\},)|(?<=\}, ))\{"[A-Za-z_]')
_BYTES_PER_SIBLING: Final = 2_048
"""Where there are more, counting brackets is no slower."""

_DIGITS: Final = re.compile(rb"[0-9]*")
_DIGIT_BYTES: Final = frozenset(b"0123456789")


def brackets_outside(data: bytes, *, is_json: bool = True) -> Iterator[bytes]:
    """Yield the brackets and marks outside strings, all brackets as square ones, block by block.

    Args:
        data: A JSON document.
        is_json: Whether it is known to be one, so that only some letters follow a backslash.
    """
    is_inside = False
    start, end = 0, len(data)
    while start < end:
        stop = _block_end(data, start, end)
        block = data[start:stop]
        marks = _marks_of_json(block) if is_json else _marks(block)
        parts = marks.replace(b'""', b"").split(b'"')
        yield b"".join(parts[int(is_inside) :: 2])
        is_inside ^= len(parts) % 2 == 0
        start = stop


def depths_of_marks(data: bytes) -> Iterator[int]:
    """Yield for each mark in *data* how many brackets are open there."""
    depth = 0
    for brackets in brackets_outside(data):
        *before_marks, rest = brackets.split(MARK)
        for part in before_marks:
            depth += _net(part)
            yield depth
        depth += _net(rest)


def is_deeper_than(data: bytes, depth_max: int, *, is_json: bool = True) -> bool:
    """Return whether *data* nests deeper than *depth_max* levels.

    Args:
        data: A document.
        depth_max: Most levels.
        is_json: Whether it is known to be valid; else levels are those of its brackets.
    """
    depth = 0
    for brackets in brackets_outside(data, is_json=is_json):
        if not _is_flat(brackets, depth_max - depth) and _deepest(brackets, depth) > depth_max:
            return True
        depth += _net(brackets)
    return False


def holds_few_brackets(data: bytes, depth_max: int, siblings: int = 0) -> bool:
    """Return true if *data* holds too few brackets to nest deeper than *depth_max* levels.

    Args:
        data: A document.
        depth_max: Most levels.
        siblings: How many objects are known to stand in a list behind another object in it.
    """
    most = depth_max // 2
    return not (_has_more(data, b"[", most) or _has_more(data, b"{", most + siblings))


def nests_little(data: bytes, depth_max: int) -> bool:
    """Return true if *data* certainly nests at most *depth_max* levels; false means: count them.

    An object that comes right after another, in the same list, leads no deeper than that one. What
    looks so inside a string is none: there a quote has a backslash, and behind a quote that ends a
    string comes no letter.

    Args:
        data: A document; if it turns out not to be valid JSON, nothing is certain.
        depth_max: Most levels.
    """
    if holds_few_brackets(data, depth_max):
        return True
    deeper, siblings_left = 0, len(data) // _BYTES_PER_SIBLING
    for opening in (b"{", b"["):
        at = data.find(opening)
        while at >= 0:
            if _SIBLING.match(data, at):
                siblings_left -= 1
            else:
                deeper += 1
            if deeper > depth_max or siblings_left < 0:
                return False
            at = data.find(opening, at + 1)
    return True


def long_number(data: bytes, digits_max: int) -> int | None:
    """Return where a number with more than *digits_max* digits in a row begins, or None.

    A run that long covers a multiple of its length, so only those places are looked at.

    Args:
        data: A valid JSON document.
        digits_max: Most digits in a row.
    """
    step = digits_max + 1
    checked, is_inside, behind = 0, False, 0
    for place in range(digits_max, len(data), step):
        if place < behind or data[place] not in _DIGIT_BYTES:
            continue
        begin, behind = _run_around(data, place, step)
        if behind - begin > digits_max:
            is_inside ^= _has_odd_quotes(data[checked:begin])
            checked = begin
            if not is_inside:
                return begin
    return None


def is_utf8(data: bytes) -> bool:
    """Return whether *data* is valid UTF-8."""
    if data.isascii():
        return True
    decode = codecs.getincrementaldecoder("utf-8")().decode
    try:
        for start in range(0, len(data), _BLOCK_BYTES):
            decode(data[start : start + _BLOCK_BYTES])
        decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _block_end(data: bytes, start: int, end: int) -> int:
    """Return where a block that begins at *start* ends, so that no escape is cut in two."""
    stop = start + _BLOCK_BYTES
    if stop >= end:
        return end
    block = data[start:stop]
    return stop - (len(block) - len(block.rstrip(b"\\"))) % 2


def _marks(block: bytes) -> bytes:
    return _without_escapes(block).translate(TO_SQUARE, NO_BRACKETS_NOR_MARKS)


def _marks_of_json(block: bytes) -> bytes:
    """Return the same of valid JSON; escapes are taken out of what little can be part of any."""
    if b"\\" not in block:
        return block.translate(TO_SQUARE, NO_BRACKETS_NOR_MARKS)
    little = block.translate(TO_SQUARE, _NO_MARKS_NOR_ESCAPES)
    return _without_escapes(little).translate(None, _ESCAPES)


def _without_escapes(block: bytes) -> bytes:
    if b"\\" not in block:
        return block
    return block.replace(b"\\\\", b"").replace(b'\\"', b"")


def _has_odd_quotes(block: bytes) -> bool:
    return _without_escapes(block).count(b'"') % 2 == 1


def _has_more(data: bytes, byte: bytes, count_max: int) -> bool:
    """Return whether *byte* occurs more than *count_max* times; looking beats counting."""
    at = -1
    for _ in range(count_max + 1):
        at = data.find(byte, at + 1)
        if at < 0:
            return False
    return True


def _net(brackets: bytes) -> int:
    return brackets.count(b"[") - brackets.count(b"]")


def _is_flat(brackets: bytes, levels: int) -> bool:
    """Return true if *brackets* certainly nest at most *levels* deep; false means: count them."""
    rest, peeled, is_shrinking = brackets, 0, True
    while rest and is_shrinking:
        shorter = rest.replace(b"[]", b"")
        is_shrinking = len(shorter) < len(rest) * _WORTH_PEELING
        rest = shorter
        peeled += 1
    return _deepest(rest, peeled) <= levels


def _deepest(brackets: bytes, depth: int) -> int:
    """Return the deepest level of *brackets*, which begin at *depth*."""
    deepest = depth
    for run in _RUNS.findall(brackets):
        depth += len(run) if run[0] == _OPEN else -len(run)
        deepest = max(deepest, depth)
    return deepest


def _run_around(data: bytes, place: int, reach: int) -> tuple[int, int]:
    """Return begin and end of the digits around *place*; the begin at most *reach* before it."""
    lowest = max(place - reach, 0)
    before = data[lowest:place]
    begin = place - (len(before) - len(before.rstrip(b"0123456789")))
    match = _DIGITS.match(data, place)
    return begin, match.end() if match else place + 1
