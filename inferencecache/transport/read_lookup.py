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
order or unknown, garbage. Where records cannot be told apart for certain, or more of the same field
turns up elsewhere, the library parses the whole message.

Source: the Protocol Buffers encoding guide, sections on message structure and packed fields.
"""

from collections.abc import Callable, Sequence
from typing import Final

from google.protobuf.message import DecodeError

from inferencecache.index import PackedHashes
from inferencecache.service import RouteRequest
from inferencecache.transport.convert_lookup import route_request
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

_FIELDS: Final = pb.LookupRouteRequest.DESCRIPTOR.fields_by_name
_VARINT: Final = 0
_BYTES: Final = 2
_KIND_MASK: Final = 7
_MORE: Final = 0x80
"""Set in every byte of a varint but its last one."""


def _tag(name: str) -> bytes:
    return bytes((_FIELDS[name].number << 3 | _BYTES,))


_HASHES: Final = _tag("block_hashes")
_COUNTS: Final = _tag("block_token_counts")

_parse: Final[Callable[[bytes], pb.LookupRouteRequest]] = pb.LookupRouteRequest.FromString


def read_route_request(data: bytes) -> RouteRequest | None:
    """Return what a serialised LookupRouteRequest asks, or None where it does not parse.

    Args:
        data: The message as received.
    """
    try:
        start = _find_hashes(data)
        request = None if start < 0 else _read_packed(data, start)
        return request or route_request(_parse(data))
    except DecodeError:
        return None


def _read_packed(data: bytes, start: int) -> RouteRequest | None:
    """Return the request whose first hash is at *start*, None where its chain has another shape."""
    stop = _end_of_records(data, start)
    if stop < 0:
        return None
    counts, after = _counts_at(data, stop)
    rest = _parse(data[:start] + data[after:])
    if rest.block_hashes or (counts and rest.block_token_counts):
        return None
    return route_request(rest, _packed(data, start, stop), counts)


def _find_hashes(data: bytes) -> int:
    """Return where the first block hash begins, -1 where the fields before it are not plain.

    Plain are fields with a tag of one byte that hold a varint or fewer than 128 bytes.
    """
    at, size = 0, len(data) - 1
    while at < size:
        tag = data[at]
        if tag == _HASHES[0]:
            return at
        kind = tag & _KIND_MASK
        at += 1
        if tag >= _MORE or kind not in (_VARINT, _BYTES):
            return -1
        if kind == _BYTES and data[at] < _MORE:
            at += 1 + data[at]
        elif kind == _VARINT:
            while at < size and data[at] >= _MORE:
                at += 1
            at += 1
        else:
            return -1
    return -1


def _end_of_records(data: bytes, start: int) -> int:
    """Return where the records like the one at *start* end, -1 where that is not certain.

    If every record up to some point has the same tag and length as the first, the next one begins
    exactly there: so comparing bytes at equal distances is a parse.
    """
    width = data[start + 1]
    if not 0 < width < _MORE:
        return -1
    stride = width + len(_HASHES) + 1
    tags = data[start::stride]
    # Bytes of later fields may look like tags at this distance; then there are fewer records.
    records = tags.count(_HASHES)
    if tags[:records] != _HASHES * records:
        records = len(tags) - len(tags.lstrip(_HASHES))
    stop = start + records * stride
    lengths = data[start + 1 : stop : stride]
    if stop > len(data) or lengths != lengths[:1] * records:
        return -1
    return stop


def _packed(data: bytes, start: int, stop: int) -> PackedHashes:
    """Return records as the index packs blocks: length, hash and a pad, without the tag."""
    width = data[start + 1]
    stride = width + len(_HASHES) + 1
    # One copy, and no more: a chain is several KiB, and each further copy is cold memory. The last
    # record's pad is the byte after it, if there is one.
    packed = bytearray(memoryview(data)[start + 1 : stop + 1])
    if stop == len(data):
        packed.append(0)
    packed[width + 1 :: stride] = bytes(len(packed) // stride)
    return PackedHashes(packed, width)


def _counts_at(data: bytes, at: int) -> tuple[Sequence[int] | None, int]:
    """Return the token counts at *at* and where they end, or None and *at* for the library.

    Counts below 128 take one byte each, so the field's content is the sequence of them. A larger
    count of two bytes, the same for every block, is read once.
    """
    if data[at : at + 1] != _COUNTS:
        return None, at
    size, begin = _short_varint(data, at + 1)
    content = data[begin : begin + size]
    if not size or len(content) < size:
        return None, at
    if content.isascii():
        return content, begin + size
    count, width = _short_varint(content, 0)
    if content == content[:width] * (size // width if width else 0):
        return [count] * (size // width), begin + size
    return None, at


def _short_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at *at* and where it ends; 0 and 0 if it has more than two bytes."""
    head = data[at : at + 2]
    if head and head[0] < _MORE:
        return head[0], at + 1
    if len(head) == 2 and head[1] < _MORE:  # noqa: PLR2004 - the two bytes asked for
        return head[0] - _MORE | head[1] << 7, at + 2
    return 0, 0
