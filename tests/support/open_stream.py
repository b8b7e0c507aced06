"""A stream of reports that a server has begun to read."""

import asyncio
from typing import Any

from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1 import inferencecache_pb2_grpc as rpc

_LIMIT_S = 60


async def open_stream(stub: rpc.InferenceCacheStub, update: pb.CacheStateUpdate) -> Any:
    """Report *update* in a stream that stays open, and return that once it was taken in.

    A call made after another one may be accepted before it, so that only its effect tells: the
    update has to carry numbers of the replica, which can be asked for.
    """
    stream = stub.ReportCacheState()
    await stream.write(update)
    about = pb.GetCacheStateRequest(tenant_id=update.tenant_id, model_id=update.model_id)
    async with asyncio.timeout(_LIMIT_S):
        while not (await stub.GetCacheState(about)).replicas:
            pass
    return stream
