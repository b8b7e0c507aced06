"""Messages cut off anywhere, and bytes that are none: our readers judge as the library does."""

from collections.abc import Callable, Generator
from random import Random
from typing import TypeVar

import pytest
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from inferencecache.settings.grpc import GrpcSettings
from inferencecache.transport.cache_handler import SERVICE
from inferencecache.transport.convert import state_update
from inferencecache.transport.deserialize import lenient
from inferencecache.transport.read_lookup import read_in_pieces, read_names, read_route_request
from inferencecache.transport.read_report import long_update_steps
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

ResultT = TypeVar("ResultT")

CHAIN = [b"ab", b"cd", b"ef"]
VALID: dict[str, list[Message]] = {
    "RenderTemplate": [pb.RenderTemplateRequest(template_ref="t", variables={"a": "é", "b": ""})],
    "LookupRoute": [
        pb.LookupRouteRequest(block_hashes=CHAIN),
        pb.LookupRouteRequest(block_hashes=CHAIN, block_token_counts=[16, 300, 1]),
        pb.LookupRouteRequest(block_token_counts=[16] * 3),
        pb.LookupRouteRequest(
            model_id="é",
            tenant_id="t",
            hash_scheme="s",
            prefix_hash=b"hash",
            prefix_token_count=-1,
            slo=pb.SLO(ttft_ms=200),
            block_hashes=CHAIN,
            block_token_counts=[16] * 3,
            token_ids=[1, 70_000],
            prompt_text="€",
            adapter_id="a",
        ),
    ],
    "LookupPDRoute": [pb.LookupPDRouteRequest(model_id="m", prefix_hash=b"h")],
    "GetCacheState": [pb.GetCacheStateRequest(model_id="m", tenant_id="é")],
    "ReportCacheState": [
        pb.CacheStateUpdate(prefixes=[pb.PrefixEntry(prefix_hash=b"h", token_count=300)] * 3),
        pb.CacheStateUpdate(
            replica_id="r",
            model_id="é",
            timestamp_us=-1,
            prefixes=[
                pb.PrefixEntry(prefix_hash=b"h", tier=2, adapter_id="é"),
                pb.PrefixEntry(block_hashes=CHAIN, block_token_counts=[16] * 3),
                pb.PrefixEntry(block_hashes=[b"%02d" % n for n in range(90)]),
            ],
            stats=pb.ReplicaStats(hit_rate=0.5, client_version="é"),
        ),
    ],
    "PublishEvent": [pb.CacheEvent(type=4, replica_id="é", prefix_hash=b"h", timestamp_us=-1)],
    "StreamCacheEvents": [pb.StreamEventsRequest(model_id="é", types=[1, 2])],
    "StreamMetrics": [pb.StreamMetricsRequest(names=["a", "é"])],
}


def ended(steps: Generator[None, None, ResultT]) -> ResultT:
    """Return the result of *steps*."""
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            result: ResultT = finished.value
            return result


READERS: dict[str, list[Callable[[bytes], object]]] = {
    "LookupRoute": [
        read_route_request,
        lambda data: read_route_request(data, 2),
    ],
    "ReportCacheState": [state_update],
}
LONG_READERS: dict[str, list[Callable[[bytes], object]]] = {
    "LookupRoute": [lambda data: ended(read_in_pieces(data, 2, 100))],
    "ReportCacheState": [lambda data: ended(long_update_steps(data, GrpcSettings()))],
}
GROUP = 3
MESSAGES = {method.name: GetMessageClass(method.input_type) for method in SERVICE.methods}


def has_group(message: Message) -> bool:
    """Tell whether an unknown field is a group, which long messages may not have."""
    return any(field.wire_type == GROUP for field in UnknownFieldSet(message))


def judge_alike(method: str, data: bytes) -> None:
    """Demand that each reader of *method* takes *data* where the library does."""
    try:
        message = MESSAGES[method].FromString(data)
    except DecodeError:
        message = None
    is_valid = message is not None
    for read in READERS.get(method, [lenient(MESSAGES[method])]):
        assert (read(data) is not None) == is_valid, data
    for read in LONG_READERS.get(method, []):
        is_taken = message is not None and not has_group(message)
        assert (read(data) is not None) == is_taken, data
    if method == "LookupRoute" and not is_valid:
        names = read_names(data)
        assert names is None or not names.block_hashes


@pytest.mark.parametrize("method", list(MESSAGES))
def test_messages_that_are_cut_off(method: str) -> None:
    """Behind each of their bytes, and with something else there."""
    for message in VALID[method]:
        whole = message.SerializeToString()
        for end in range(len(whole) + 1):
            judge_alike(method, whole[:end])
            judge_alike(method, whole[end:])
            judge_alike(method, whole[:end] + b"\xff" + whole[end:])


@pytest.mark.parametrize("method", list(MESSAGES))
def test_every_message_of_one_and_two_bytes(method: str) -> None:
    """The shortest of all."""
    for first in range(256):
        judge_alike(method, bytes([first]))
        for second in (0, 1, 2, 8, 0x7F, 0x80, 0xFF):
            judge_alike(method, bytes([first, second]))


@pytest.mark.parametrize("method", list(MESSAGES))
def test_bytes_that_are_no_message(method: str) -> None:
    """Mostly; some happen to be one."""
    random = Random(7)
    tags = [
        field.number << 3 | kind for field in MESSAGES[method].DESCRIPTOR.fields for kind in (0, 2)
    ]
    for _ in range(2_000):
        data = bytes(
            random.choice([*tags, 0, 1, 2, 3, 0x7F, 0x80]) for _ in range(random.randrange(1, 12))
        )
        judge_alike(method, data)
