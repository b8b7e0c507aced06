"""One GetCacheState call, awaited, whose every failure is a value."""

import asyncio
from typing import Final

import grpc
import grpc.aio

from inferencecache.transport.client_channel import SERVICE_NAME
from inferencecache.transport.lookup_client import is_cancelled_from_outside
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

_METHOD: Final = f"/{SERVICE_NAME}/GetCacheState"


class CacheStateCaller:
    """Ask over a channel of the running event loop.

    Args:
        channel: To a server of the cache plane.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._call: grpc.aio.UnaryUnaryMultiCallable[
            pb.GetCacheStateRequest, pb.GetCacheStateResponse
        ] = channel.unary_unary(
            _METHOD,
            pb.GetCacheStateRequest.SerializeToString,
            pb.GetCacheStateResponse.FromString,
        )

    async def is_empty(self, tenant_id: str, model_id: str, timeout_s: float) -> bool | None:
        """Return whether no replica has said anything of a tenant's model; None if nobody says.

        Args:
            tenant_id: The tenant.
            model_id: The model.
            timeout_s: Seconds to wait.

        Raises:
            asyncio.CancelledError: The calling task was cancelled.
        """
        request = pb.GetCacheStateRequest(tenant_id=tenant_id, model_id=model_id)
        try:
            answer = await self._call(request, timeout=timeout_s)
        except (grpc.aio.AioRpcError, grpc.aio.UsageError):
            return None
        except asyncio.CancelledError:
            if is_cancelled_from_outside():
                raise
            return None
        return not answer.replicas and not answer.summary.total_prefixes
