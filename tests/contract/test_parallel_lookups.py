"""Thousands of lookups at once on one connection: all are answered, none is refused."""

import asyncio

import grpc
from served_plane import ServedPlane

from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1 import inferencecache_pb2_grpc as pb_grpc

LOOKUPS = 3_000


def flood(target: str) -> list[str]:
    """Ask everything at once from a thread of its own; return the codes of the answers."""
    request = pb.LookupRouteRequest(
        tenant_id="t", model_id="m", hash_scheme="vllm", prefix_hash=b"x"
    )
    with grpc.insecure_channel(target) as channel:
        stub = pb_grpc.InferenceCacheStub(channel)
        calls = [stub.LookupRoute.future(request, timeout=60) for _ in range(LOOKUPS)]
        return [call.result().reason_code for call in calls]


async def test_lookups_beyond_what_the_loop_takes_at_once_wait(served: ServedPlane) -> None:
    """A burst queues up; the library's own limit of a thousand waiting calls is out of the way."""
    codes = await asyncio.to_thread(flood, served.target)

    assert codes == ["NO_HINT"] * LOOKUPS
