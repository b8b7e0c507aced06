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

from collections.abc import Callable
from typing import Final

from google.protobuf.message import DecodeError

from inferencecache.service import RouteRequest
from inferencecache.transport.convert_lookup import route_request
from inferencecache.transport.wire_chain import ChainCutter, CutChain
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

_cutter: Final = ChainCutter(pb.LookupRouteRequest.DESCRIPTOR)
_parse: Final[Callable[[bytes], pb.LookupRouteRequest]] = pb.LookupRouteRequest.FromString


def read_route_request(data: bytes) -> RouteRequest | None:
    """Return what a serialised LookupRouteRequest asks, or None where it does not parse.

    Args:
        data: The message as received.
    """
    try:
        cut = _cutter.cut(data)
        request = _read_packed(cut) if cut is not None else None
        return request or route_request(_parse(data))
    except DecodeError:
        return None


def _read_packed(cut: CutChain) -> RouteRequest | None:
    rest = _parse(cut.rest)
    if rest.block_hashes or (cut.counts and rest.block_token_counts):
        return None
    return route_request(rest, cut.hashes, cut.counts)
