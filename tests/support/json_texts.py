"""Strategies for JSON texts: any spacing, any escapes, keys that look like ``model``."""

import json

from hypothesis import strategies as st

SPACES = st.sampled_from([b"", b"", b" ", b"\n\t ", b"\r\n"])
TRICKY = [
    b'"model"',
    b'"model"',
    b'"\\u006dodel"',
    b'"mod\\u0065l"',
    b'"\\u006D\\u006Fde\\u006C"',
    b'"x\\"model"',
    b'"\\\\model"',
    b'"Model"',
    b'"model "',
    b'"messages"',
    b'"prompt"',
    b'"input"',
    b'"system"',
    b'"data"',
    b'"a"',
    b'"\\ud83d"',
]
"""Keys that are ``model``, and keys that only look like it."""

TEXTS = [
    b'"m"',
    b'"\\"model\\": "',
    b'"{[\\""',
    b'"\\\\"',
    b'"]}"',
    '"é漢😀"'.encode(),
    b'"\\ud83d\\ude00"',
    b'"\\ud83d"',
    b'""',
    b'"data"',
    b'";base64,"',
]


def plain_strings() -> st.SearchStrategy[bytes]:
    """Return strings as documents write them, escaped or not."""
    return st.one_of(
        st.sampled_from(TEXTS),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=12).map(
            lambda text: json.dumps(text).encode()
        ),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=12).map(
            lambda text: json.dumps(text, ensure_ascii=False).encode()
        ),
    )


def scalars() -> st.SearchStrategy[bytes]:
    """Return values without parts."""
    numbers = st.sampled_from([b"0", b"-1", b"1.5", b"1e400", b"-0.0E-7", b"12345678901234567890"])
    literals = st.sampled_from([b"true", b"false", b"null"])
    return st.one_of(numbers, literals, plain_strings())


@st.composite
def objects(draw: st.DrawFn, values: st.SearchStrategy[bytes]) -> bytes:
    """Return an object with tricky keys."""
    members = []
    for _ in range(draw(st.integers(0, 5))):
        key = draw(st.one_of(st.sampled_from(TRICKY), plain_strings()))
        spaces = [draw(SPACES) for _ in range(4)]
        members.append(spaces[0] + key + spaces[1] + b":" + spaces[2] + draw(values) + spaces[3])
    return b"{" + b",".join(members) + draw(SPACES) * (not members) + b"}"


@st.composite
def arrays(draw: st.DrawFn, values: st.SearchStrategy[bytes]) -> bytes:
    """Return an array."""
    items = [draw(SPACES) + item + draw(SPACES) for item in draw(st.lists(values, max_size=4))]
    return b"[" + b",".join(items) + b"]"


def documents() -> st.SearchStrategy[bytes]:
    """Return objects of any depth."""
    inner = st.recursive(
        scalars(), lambda values: st.one_of(objects(values), arrays(values)), max_leaves=12
    )
    return objects(inner)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """Return objects that name a model for certain, first or last, among whatever else."""
    document = draw(documents())
    key = draw(st.sampled_from([b'"model"', b'"\\u006dodel"']))
    member = (
        key + draw(SPACES) + b":" + draw(SPACES) + draw(st.sampled_from([b'"m"', b'"\\u006d"']))
    )
    inside = document[1:-1]
    if not inside.strip():
        return b"{" + member + b"}"
    if draw(st.booleans()):
        return b"{" + member + b"," + inside + b"}"
    return b"{" + inside + b"," + member + b"}"
