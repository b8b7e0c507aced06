"""LookupRoute requests from their bytes: the chain stays packed, the library reads the rest.

Nearly all of a request is its chain: one record per block, all of one size, in a row, and then a
count per block. Made into objects that costs several times what the whole answer does, and a match
needs almost none of them::

    0a 08 ..       model_id                        to the library
    ...
    3a 08 <hash>   block_hashes, 512 records       one slice of the message, packed for comparing
    42 80 04 ..    block_token_counts, packed      one slice of the message
    5a 02 ..       adapter_id                      to the library

Theory of operation: a message is a sequence of fields, and the meaning of one field does not change
when whole other fields are cut out around it. So the records are cut out, and what is left goes
through the library's parser, which judges everything else: text that is not UTF-8, fields out of
order or unknown, garbage. What is left names a partition and hardly anything else, so the same
bytes come again and again, and are parsed once. Where records cannot be told apart for certain, or
more of the same field turns up elsewhere, the library parses the whole message.

Source: the Protocol Buffers encoding guide, sections on message structure and packed fields.
"""

from collections.abc import Callable, Generator, Sequence
from functools import lru_cache
from typing import Final

from google.protobuf.message import DecodeError

from inferencecache.index import PackedHashes
from inferencecache.service import RouteRequest
from inferencecache.settings.lookup import LookupSettings
from inferencecache.transport.convert_lookup import route_request
from inferencecache.transport.convert_report import NAME_BYTES_MAX
from inferencecache.transport.wire_chain import (
    KIND_BITS,
    KIND_MASK,
    LENGTH_DELIMITED,
    MORE,
    VARINT,
    ChainCutter,
    varint_at,
)
from inferencecache.transport.wire_pieces import MessagePieces
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

_cutter: Final = ChainCutter(pb.LookupRouteRequest.DESCRIPTOR)
_parse: Final[Callable[[bytes], pb.LookupRouteRequest]] = pb.LookupRouteRequest.FromString

_RESTS_MAX: Final = 1_024
"""Remainders remembered: partitions, as often as clients ask them for something else as well."""

_FIELDS_MAX: Final = 64
"""Fields looked at for the names; a client that writes each field once has eleven."""

_PROMPT_FIELDS: Final = frozenset(
    field.number
    for field in pb.LookupRouteRequest.DESCRIPTOR.fields
    if field.name in {"block_hashes", "block_token_counts", "token_ids", "prompt_text"}
)
"""Numbers of the fields that may be long."""

_CUT_BYTES_MAX: Final = 4 * 1_048_576
"""Longest message of which the chain is cut out in one step."""

_REST_BYTES_MAX: Final = 512
"""Longest remainder worth remembering; it bounds what a peer can make us remember."""


def read_route_request(data: bytes, blocks_max: int | None = None) -> RouteRequest | None:
    """Return what a serialised LookupRouteRequest asks, or None where it does not parse.

    Args:
        data: The message as received.
        blocks_max: Blocks of its chain that are read, and counts; None for all.
    """
    try:
        cut = _cutter.cut(data, blocks_max)
        request = _read_cut(*cut, blocks_max) if cut is not None else None
        return route_request(_parse(data), blocks_max) if request is None else request
    except DecodeError:
        return None


def read_long_request(
    data: bytes, settings: LookupSettings
) -> Generator[None, None, RouteRequest | None]:
    """Return what :func:`read_route_request` does, yielding between bounded steps.

    Args:
        data: The message as received.
        settings: How much of chain and text is of interest.
    """
    blocks_max = settings.chain_blocks_max + 1
    try:
        cut = _cutter.cut(data, blocks_max) if len(data) <= _CUT_BYTES_MAX else None
        if cut is not None and cut[1] is not None and len(cut[2]) <= settings.long_message_bytes:
            request = _read_cut(*cut, blocks_max)
            if request is not None:
                return request
    except DecodeError:
        return None
    return (yield from read_in_pieces(data, blocks_max, settings.prompt_text_bytes_max))


def read_in_pieces(
    data: bytes, blocks_max: int, text_bytes_max: int
) -> Generator[None, None, RouteRequest | None]:
    """Return what :func:`read_route_request` does, with the library alone and piece by piece.

    Args:
        data: The message as received.
        blocks_max: Blocks of its chain that are read, and counts.
        text_bytes_max: Most bytes of its prompt that are of interest.
    """
    message = pb.LookupRouteRequest()
    hashes: list[bytes] = []
    pieces = MessagePieces(message.DESCRIPTOR, max(text_bytes_max, NAME_BYTES_MAX))
    try:
        for piece in pieces.cut(data):
            message.MergeFromString(piece)
            hashes += message.block_hashes[: blocks_max - len(hashes)]
            message.ClearField("block_hashes")
            yield
    except DecodeError:
        return None
    return route_request(message, blocks_max, hashes)


def read_names(data: bytes) -> RouteRequest | None:
    """Return what a serialised LookupRouteRequest asks about, without the prompt itself.

    It takes a small part of the time that reading all of the message does.

    Args:
        data: The message as received.

    Returns:
        The request without chain, tokens and text; None where the message has to be read whole.
    """
    cut = _cutter.cut(data, 1) if len(data) <= _CUT_BYTES_MAX else None
    kept = _without_prompt(data if cut is None else cut[2])
    try:
        return None if kept is None else route_request(_parse(kept))
    except DecodeError:
        return None


def _without_prompt(data: bytes) -> bytes | None:
    """Return the fields that are no part of the prompt; None where those are not few and short."""
    kept, start = b"", 0
    for _ in range(_FIELDS_MAX):
        if start == len(data):
            return kept
        end = _field_end(data, start)
        if end is None or end > len(data):
            return None
        if data[start] >> KIND_BITS not in _PROMPT_FIELDS:
            if len(kept) + end - start > _REST_BYTES_MAX:
                return None
            kept += data[start:end]
        start = end
    return None


def _field_end(data: bytes, at: int) -> int | None:
    """Return where the field at *at* ends, None if that takes the library."""
    tag = data[at]
    value, width = varint_at(data, at + 1)
    kind = tag & KIND_MASK
    if tag >= MORE or not width or kind not in (VARINT, LENGTH_DELIMITED):
        return None
    return at + 1 + width + (value if kind == LENGTH_DELIMITED else 0)


def _read_cut(
    hashes: PackedHashes, counts: Sequence[int] | None, rest: bytes, blocks_max: int | None
) -> RouteRequest | None:
    """Return what a chain and the *rest* of its message ask, None if the rest has more of it."""
    if counts is None:
        message = _parse(rest)
        return None if message.block_hashes else route_request(message, blocks_max, hashes)
    read = _read_rest if len(rest) <= _REST_BYTES_MAX else _read_rest.__wrapped__
    asked = read(rest)
    if asked is None:
        return None
    *others, _, _ = asked
    # What the constructor does, without a Python call.
    return tuple.__new__(RouteRequest, (*others, hashes, counts))


@lru_cache(maxsize=_RESTS_MAX)
def _read_rest(rest: bytes) -> RouteRequest | None:
    """Return what a message without its chain asks, None if that holds more of the chain.

    Raises:
        DecodeError: It does not parse.
    """
    message = _parse(rest)
    if message.block_hashes or message.block_token_counts:
        return None
    return route_request(message)
