"""Lookup requests read packed are the requests the library reads, for any message and any bytes."""

import pytest
from google.protobuf.message import DecodeError
from hypothesis import example, given
from hypothesis import strategies as st

from inferencecache.index import PackedHashes
from inferencecache.service import RouteRequest
from inferencecache.transport.convert import route_request
from inferencecache.transport.read_lookup import read_names, read_route_request
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

MESSAGE = pb.LookupRouteRequest
CHAIN = [b"%08d" % number for number in range(40)]

texts = st.sampled_from(["", "m", "é" * 70, "x" * 127, "x" * 128])
hashes = st.lists(st.binary(min_size=1, max_size=9), max_size=6) | st.lists(
    st.binary(min_size=2, max_size=2), max_size=40
)
token_counts = st.lists(st.integers(-2, 400), max_size=6) | st.builds(
    lambda count, blocks: [count] * blocks,
    st.sampled_from([0, 16, 127, 128, 16_383, 16_384, -1]),
    st.integers(0, 300),
)
messages = st.builds(
    MESSAGE,
    model_id=texts,
    tenant_id=texts,
    prefix_hash=st.binary(max_size=200),
    prefix_token_count=st.sampled_from([0, 1, 200, -1]),
    hash_scheme=texts,
    slo=st.none() | st.builds(pb.SLO, ttft_ms=st.sampled_from([0, 200])),
    block_hashes=hashes,
    block_token_counts=token_counts,
    token_ids=st.lists(st.integers(0, 2**32 - 1), max_size=4),
    prompt_text=texts,
    adapter_id=texts,
)
"""Whole messages; what their fields hold lies on both sides of each border of the fast path."""

stray = st.sampled_from(
    [
        b"\x3a\x02ab",  # one more block
        b"\x3a\x82\x00ab",  # a block whose length takes more bytes than it needs
        b"\x3a\x00",  # an empty block
        b"\x3a\x7fab",  # a block cut off
        b"\x40\x10",  # a count outside a packed field
        b"\x42\x02\x10\x10",  # one more packed field of counts
        b"\x42\x02\x90\x00",  # a count that takes more bytes than it needs
        b"\x42\x01\x90",  # a count cut off
        b"\x0a\x01\xff",  # text that is not UTF-8
        b"\x5a\x01\xff",
        b"\x0a\x01n",  # a text given twice: the last one counts
        b"\x08\x01",  # a text's number with the kind of a varint
        b"\x38\x81\x00",  # the blocks' number with the kind of a varint
        b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a varint too long
        b"\x3b\x3a\x02ab\x3c",  # a group around a block
        b"\x3d\x01\x02\x03\x04",  # four bytes
        b"\x39\x01\x02\x03\x04\x05\x06\x07\x08",  # eight bytes
        b"\xfa\x07\x02ab",  # a field nobody knows
        b"\x02\x01a",  # the field 0, which cannot be
    ]
)


def plain(request: RouteRequest | None) -> tuple[object, ...] | None:
    """Return everything *request* says as plain values."""
    if request is None:
        return None
    return (
        request.model_id,
        request.tenant_id,
        request.hash_scheme,
        request.adapter_id,
        request.prefix_hash,
        request.prefix_token_count,
        list(request.block_hashes),
        list(request.block_token_counts),
        list(request.token_ids),
        request.prompt_text,
        request.ttft_ms,
        request.has_chain_arrays(),
    )


def by_the_library(data: bytes) -> RouteRequest | None:
    """Return what the library makes of *data*."""
    try:
        return route_request(MESSAGE.FromString(data))
    except DecodeError:
        return None


def agree(data: bytes) -> None:
    """Demand that both readers say the same of *data*."""
    assert plain(read_route_request(data)) == plain(by_the_library(data))


@given(messages)
def test_messages_are_read_alike(message: MESSAGE) -> None:
    """Whatever a client can serialise asks the same, packed or not."""
    agree(message.SerializeToString())


@given(messages, st.lists(stray, max_size=3), st.data())
def test_fields_in_any_order_are_read_alike(
    message: MESSAGE, extra: list[bytes], data: st.DataObject
) -> None:
    """Repeated, unknown, misplaced and broken fields between others change nothing either."""
    pieces = [*_fields(message), *extra]

    agree(b"".join(data.draw(st.permutations(pieces))))


@given(messages, st.integers(0, 400), st.binary(max_size=4))
def test_damaged_messages_are_read_alike(message: MESSAGE, at: int, patch: bytes) -> None:
    """Bytes overwritten anywhere, or cut off, give the same request or none."""
    whole = message.SerializeToString()

    agree(whole[:at] + patch + whole[at + len(patch) :])
    agree(whole[:at])


@given(st.lists(stray, max_size=5), st.binary(max_size=12))
def test_any_bytes_are_read_alike(pieces: list[bytes], tail: bytes) -> None:
    """Garbage that begins like a chain is no exception."""
    agree(b"".join(pieces) + tail)


@example(127)
@example(128)
@example(300)
@given(st.integers(1, 200))
def test_wide_hashes_are_read_alike(width: int) -> None:
    """Hashes as wide as a length of one byte can say, and wider."""
    blocks = [bytes([number]) * width for number in range(3)]

    agree(MESSAGE(block_hashes=blocks, block_token_counts=[16] * 3).SerializeToString())


@pytest.mark.parametrize("tokens", [16, 127, 128, 1_024])
def test_usual_chains_stay_packed(tokens: int) -> None:
    """The shape that gateways send is read without making its blocks objects."""
    message = MESSAGE(
        model_id="m",
        tenant_id="t",
        hash_scheme="s",
        block_hashes=CHAIN,
        block_token_counts=[tokens] * len(CHAIN),
        adapter_id="a",
    )
    request = read_route_request(message.SerializeToString())

    assert request is not None
    assert type(request.block_hashes) is PackedHashes
    assert list(request.block_hashes) == CHAIN
    assert list(request.block_token_counts) == [tokens] * len(CHAIN)


@given(messages, st.integers(1, 6))
def test_overlong_chains_are_read_to_the_limit(message: MESSAGE, blocks_max: int) -> None:
    """Packed or not, as much of the blocks and of the counts."""
    whole = read_route_request(message.SerializeToString())
    request = read_route_request(message.SerializeToString(), blocks_max)

    assert whole is not None
    assert request is not None
    assert list(request.block_hashes) == list(whole.block_hashes)[:blocks_max]
    assert list(request.block_token_counts) == list(whole.block_token_counts)[:blocks_max]
    assert plain(request)[:6] == plain(whole)[:6]


@pytest.mark.parametrize("tokens", [16, 300])
def test_long_chains_stay_packed(tokens: int) -> None:
    """Also where the length of their counts takes more than two bytes."""
    chain = [b"%08d" % number for number in range(20_000)]
    message = MESSAGE(block_hashes=chain, block_token_counts=[tokens] * len(chain))
    request = read_route_request(message.SerializeToString(), 19_000)

    assert request is not None
    assert type(request.block_hashes) is PackedHashes
    assert list(request.block_hashes) == chain[:19_000]
    assert list(request.block_token_counts) == [tokens] * 19_000


def test_chains_without_counts_stay_packed() -> None:
    """A chain whose counts the library has to read is packed all the same."""
    counts = [*range(100, 139), 7]
    message = MESSAGE(block_hashes=CHAIN, block_token_counts=counts)
    request = read_route_request(message.SerializeToString())

    assert request is not None
    assert type(request.block_hashes) is PackedHashes
    assert list(request.block_token_counts) == counts


def _fields(message: MESSAGE) -> list[bytes]:
    """Return each field of *message* serialised alone, a chain in two parts."""
    pieces = []
    for field, value in message.ListFields():
        alone = MESSAGE()
        if field.name == "slo":
            alone.slo.CopyFrom(value)
        elif field.is_repeated:
            getattr(alone, field.name).extend(value[:3])
            rest = MESSAGE()
            getattr(rest, field.name).extend(value[3:])
            pieces.append(rest.SerializeToString())
        else:
            setattr(alone, field.name, value)
        pieces.append(alone.SerializeToString())
    return pieces


@given(message=messages, tail=st.lists(stray, max_size=3))
def test_names_read_alone_are_those_of_the_whole(
    message: pb.LookupRouteRequest, tail: list[bytes]
) -> None:
    """Or they are not read alone at all; wrong ones would have wrong deadlines."""
    data = message.SerializeToString() + b"".join(tail)
    names, whole = read_names(data), read_route_request(data)
    if names is not None and whole is not None:
        assert plain(names) == plain(
            whole._replace(block_hashes=(), block_token_counts=(), token_ids=(), prompt_text="")
        )


@pytest.mark.parametrize(
    "prompt",
    [
        {"token_ids": range(50_000)},
        {"block_hashes": CHAIN * 500, "block_token_counts": [16] * 20_000},
        {"prompt_text": "x" * 100_000},
        {},
    ],
    ids=["tokens", "chain", "text", "nothing"],
)
def test_names_of_usual_messages_are_read_alone(prompt: dict[str, object]) -> None:
    """However long the prompt; before it and after it."""
    data = MESSAGE(model_id="m", tenant_id="t", adapter_id="a", **prompt).SerializeToString()
    assert read_names(data) == RouteRequest(
        model_id="m",
        tenant_id="t",
        adapter_id="a",
        block_hashes=[],
        block_token_counts=[],
        token_ids=[],
    )


@pytest.mark.parametrize(
    "data",
    [
        MESSAGE(model_id="m" * 600).SerializeToString(),
        b"\x3a\x00" * 100,
        b"\x0a\x05m",
        b"\x0a\x01\xff",
    ],
    ids=["long name", "many odd fields", "cut off", "not UTF-8"],
)
def test_names_of_odd_messages_are_not_read_alone(data: bytes) -> None:
    """They take the library, and a message's whole length."""
    assert read_names(data) is None
