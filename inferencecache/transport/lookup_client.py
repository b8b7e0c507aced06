"""One LookupRoute call, blocking or awaited, whose every failure is a value."""

import asyncio
import math
from typing import Final

import grpc
import grpc.aio

from inferencecache.transport.client_channel import LOOKUP_METHOD
from inferencecache.transport.client_codec import decode_answer, encode_query
from inferencecache.transport.client_values import (
    FailOpenCause,
    LookupFailure,
    LookupOutcome,
    LookupQuery,
)

_CAUSES: Final = {
    grpc.StatusCode.DEADLINE_EXCEEDED: FailOpenCause.DEADLINE,
    grpc.StatusCode.UNAVAILABLE: FailOpenCause.UNREACHABLE,
    grpc.StatusCode.UNAUTHENTICATED: FailOpenCause.REFUSED,
    grpc.StatusCode.PERMISSION_DENIED: FailOpenCause.REFUSED,
    grpc.StatusCode.UNIMPLEMENTED: FailOpenCause.UNSUPPORTED,
    grpc.StatusCode.RESOURCE_EXHAUSTED: FailOpenCause.TOO_LARGE,
}

_TIMEOUT_S_MAX: Final = 1e9
"""Thirty years; gRPC ends a call with a much later deadline at once."""

_CLOSED: Final = LookupFailure(FailOpenCause.CLOSED, "the client is closed")


class LookupCaller:
    """Ask over a blocking channel."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._call: grpc.UnaryUnaryMultiCallable[bytes, LookupOutcome] = channel.unary_unary(
            LOOKUP_METHOD, None, decode_answer
        )

    def ask(self, query: LookupQuery, timeout_s: float) -> LookupOutcome:
        """Return the answer, or why there is none; never raises for the outside world.

        Args:
            query: What to ask.
            timeout_s: Seconds to wait; 0 or less fails without a call.
        """
        data = encoded(query, timeout_s)
        if isinstance(data, LookupFailure):
            return data
        try:
            return self._call(data, timeout=timeout_s)
        except grpc.RpcError as error:
            return _call_failure(error)
        except ValueError:  # how a closed grpc.Channel answers
            return _CLOSED


class AsyncLookupCaller:
    """Ask over a channel of the running event loop."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._call: grpc.aio.UnaryUnaryMultiCallable[bytes, LookupOutcome] = channel.unary_unary(
            LOOKUP_METHOD, None, decode_answer
        )

    async def ask(self, query: LookupQuery, timeout_s: float) -> LookupOutcome:
        """Return the answer, or why there is none; arguments as for the blocking form.

        Raises:
            asyncio.CancelledError: The calling task was cancelled.
        """
        data = encoded(query, timeout_s)
        if isinstance(data, LookupFailure):
            return data
        try:
            return await self._call(data, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            return _failure(error.code(), error.details())
        except grpc.aio.UsageError:
            return _CLOSED
        except asyncio.CancelledError:
            if is_cancelled_from_outside():
                raise
            return _CLOSED


def encoded(query: LookupQuery, timeout_s: float) -> bytes | LookupFailure:
    """Return the bytes that ask *query*, or why it cannot be asked; the rule of every client.

    Args:
        query: What to ask.
        timeout_s: Seconds to wait.
    """
    if timeout_s <= 0:
        return LookupFailure(FailOpenCause.DEADLINE, "the deadline had passed before the call")
    if math.isnan(timeout_s) or timeout_s > _TIMEOUT_S_MAX:
        return LookupFailure(FailOpenCause.INVALID_QUERY, f"{timeout_s} s is no deadline")
    try:
        return encode_query(query)
    except (TypeError, ValueError) as error:
        return LookupFailure(FailOpenCause.INVALID_QUERY, str(error))


def _call_failure(error: grpc.RpcError) -> LookupFailure:
    assert isinstance(error, grpc.Call), "a failed call knows its status"  # noqa: S101 - ours
    return _failure(error.code(), error.details())


def _failure(status: grpc.StatusCode, details: str | None) -> LookupFailure:
    cause = _CAUSES.get(status, FailOpenCause.RPC_ERROR)
    return LookupFailure(cause, f"{status.name}: {' '.join((details or '').split())}")


def is_cancelled_from_outside() -> bool:
    """Tell a cancelled task from a call that ended because its channel was closed."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
