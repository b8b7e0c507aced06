"""Garbage gives a snapshot or the caller's error, nothing else."""

import contextlib
import json

from hypothesis import example, given
from hypothesis import strategies as st

from inferencecache.errors import InvalidRequestError
from inferencecache.policy import (
    PolicyStore,
    decode_policy_push,
    encode_policy_push,
)
from inferencecache.settings.policy import PolicySettings

KEYS = [
    "version",
    "policies",
    "tenants",
    "namespace",
    "evictionTTL",
    "minimumPrefixTokens",
    "minimumMatchedTokens",
    "routingFloorScore",
    "lookupTimeoutMs",
    "affinityRouting",
    "eviction",
    "strategy",
    "enableChainMatching",
    "requireChain",
    "enableTenantHot",
    "tenantID",
    "maxIndexEntries",
    "isolationMode",
]
keys = st.sampled_from(KEYS) | st.sampled_from(KEYS).map(str.upper) | st.text(max_size=3)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(3, 7)
    | st.integers(10**70, 10**80)
    | st.floats()
    | st.text(st.characters(), max_size=4)
    | st.sampled_from(["\ud800", "lfu", "x\udfff"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)
objects = st.lists(st.dictionaries(keys, scalars, max_size=3), max_size=3)
documents = st.fixed_dictionaries(
    {}, optional={"version": st.integers(2, 8), "policies": objects, "tenants": objects}
)


def check(body: bytes) -> None:
    """Decode, put in force and write back, or be refused with a printable message."""
    try:
        snapshot = decode_policy_push(body)
    except InvalidRequestError as error:
        str(error).encode("ascii")
        return
    PolicyStore(PolicySettings(), 1).replace(snapshot)
    assert decode_policy_push(encode_policy_push(snapshot)) == snapshot


@given(st.binary(max_size=200))
@example(b"\x00")
@example(b'{"version":7,"policies":[' + b'{"strategy":' * 3_000)
@example(b'{"version":' + b"1" * 100_000 + b"}")
@example(b'{"version":-' + b"1" * 100_000 + b"e-999999999}")
def test_any_bytes(body: bytes) -> None:
    """Arbitrary bytes are decoded or refused."""
    check(body)


@given(values | documents)
def test_any_json(document: object) -> None:
    """Arbitrary JSON, with non-numbers and half surrogates, is decoded or refused."""
    check(json.dumps(document).encode())


@given(documents, st.data())
def test_damaged_pushes(document: object, data: st.DataObject) -> None:
    """A plausible push with bytes replaced, cut or added is decoded or refused."""
    body = bytearray(json.dumps(document).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body)))
        body[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    check(bytes(body))


@given(st.text(st.sampled_from('{}[]",:0123456789.eE+-nulltrefalsversion \\u'), max_size=60))
def test_json_like_text(text: str) -> None:
    """Text made of JSON's characters is decoded or refused."""
    with contextlib.suppress(UnicodeEncodeError):
        check(text.encode())
