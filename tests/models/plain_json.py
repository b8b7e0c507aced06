"""A JSON reader that goes byte by byte and knows where each value stands; slow and plain."""

from typing import NamedTuple

SPACE = b" \t\n\r"
LITERALS = (b"true", b"false", b"null")


class NotJsonError(Exception):
    """The bytes are no JSON document."""


class Member(NamedTuple):
    """One key of the top-level object and where its value stands."""

    key: str
    start: int
    end: int


def top_level(data: bytes) -> list[Member]:
    """Return the members of the object that *data* is, in order."""
    data.decode()
    position = skip_space(data, 0)
    if data[position : position + 1] != b"{":
        raise NotJsonError
    members: list[Member] = []
    end = read_object(data, position, members)
    if skip_space(data, end) != len(data):
        raise NotJsonError
    return members


def read_value(data: bytes, at: int) -> int:
    """Return the end of the value that begins at *at*."""
    first = data[at : at + 1]
    if first == b"{":
        return read_object(data, at, [])
    if first == b"[":
        return read_array(data, at)
    if first == b'"':
        return read_string(data, at)[1]
    for literal in LITERALS:
        if data.startswith(literal, at):
            return at + len(literal)
    return read_number(data, at)


def read_object(data: bytes, at: int, members: list[Member]) -> int:
    """Read an object and add its members to *members*."""
    at = skip_space(data, at + 1)
    if data[at : at + 1] == b"}":
        return at + 1
    while True:
        if data[at : at + 1] != b'"':
            raise NotJsonError
        key, at = read_string(data, at)
        at = skip_space(data, at)
        if data[at : at + 1] != b":":
            raise NotJsonError
        start = skip_space(data, at + 1)
        end = read_value(data, start)
        members.append(Member(key, start, end))
        at = skip_space(data, end)
        if data[at : at + 1] == b"}":
            return at + 1
        if data[at : at + 1] != b",":
            raise NotJsonError
        at = skip_space(data, at + 1)


def read_array(data: bytes, at: int) -> int:
    """Read an array."""
    at = skip_space(data, at + 1)
    if data[at : at + 1] == b"]":
        return at + 1
    while True:
        at = skip_space(data, read_value(data, at))
        if data[at : at + 1] == b"]":
            return at + 1
        if data[at : at + 1] != b",":
            raise NotJsonError
        at = skip_space(data, at + 1)


def read_string(data: bytes, at: int) -> tuple[str, int]:
    """Read a string; half a surrogate pair is kept as it is."""
    units: list[str] = []
    at += 1
    while data[at : at + 1] != b'"':
        byte = data[at : at + 1]
        if not byte or byte < b" ":
            raise NotJsonError
        if byte != b"\\":
            units.append(byte.decode("latin-1"))
            at += 1
            continue
        kind = data[at + 1 : at + 2]
        if kind == b"u":
            digits = data[at + 2 : at + 6]
            if len(digits) != 4 or not all(digit in b"0123456789abcdefABCDEF" for digit in digits):
                raise NotJsonError
            units.append(chr(int(digits, 16)))
            at += 6
        elif kind and kind in b'"\\/bfnrt':
            units.append("escape")
            at += 2
        else:
            raise NotJsonError
    return "".join(units), at + 1


def read_number(data: bytes, at: int) -> int:
    """Read a number."""
    at += data[at : at + 1] == b"-"
    start = at
    at = read_digits(data, at)
    if at > start + 1 and data[start : start + 1] == b"0":
        raise NotJsonError
    if data[at : at + 1] == b".":
        at = read_digits(data, at + 1)
    if data[at : at + 1] in {b"e", b"E"}:
        at += 1
        at += data[at : at + 1] in {b"+", b"-"}
        at = read_digits(data, at)
    return at


def read_digits(data: bytes, at: int) -> int:
    """Read at least one digit."""
    start = at
    while data[at : at + 1].isdigit():
        at += 1
    if at == start:
        raise NotJsonError
    return at


def skip_space(data: bytes, at: int) -> int:
    """Return the first place from *at* on that is no space."""
    while data[at : at + 1] and data[at : at + 1] in SPACE:
        at += 1
    return at
