"""The one table from exceptions to gRPC statuses."""

from typing import Final

import grpc

from inferencecache.errors import (
    ConfigError,
    InferenceCacheError,
    InvalidRequestError,
    MalformedEventError,
)
from inferencecache.picker.faults import (
    BudgetError,
    CutPullError,
    DrainingError,
    IdleUploadError,
    UnknownIdError,
    UsedBodyError,
)
from inferencecache.service.access import AccessDeniedError

STATUS_OF: Final[dict[type[Exception], grpc.StatusCode]] = {
    InvalidRequestError: grpc.StatusCode.INVALID_ARGUMENT,
    MalformedEventError: grpc.StatusCode.INVALID_ARGUMENT,
    ConfigError: grpc.StatusCode.FAILED_PRECONDITION,
    AccessDeniedError: grpc.StatusCode.PERMISSION_DENIED,
    NotImplementedError: grpc.StatusCode.UNIMPLEMENTED,
    UnknownIdError: grpc.StatusCode.NOT_FOUND,
    UsedBodyError: grpc.StatusCode.FAILED_PRECONDITION,
    BudgetError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    IdleUploadError: grpc.StatusCode.DEADLINE_EXCEEDED,
    CutPullError: grpc.StatusCode.ABORTED,
    DrainingError: grpc.StatusCode.UNAVAILABLE,
}
"""Exceptions raised on purpose; their message goes to the caller."""

UNEXPECTED: Final = grpc.StatusCode.UNAVAILABLE
"""Everything else: the caller may try again, and is told nothing of our insides."""


def status_of(error: Exception) -> grpc.StatusCode | None:
    """Return the status of an error raised on purpose, or None for a failure of ours."""
    if isinstance(error, (InferenceCacheError, NotImplementedError)):
        for kind in type(error).__mro__:
            if kind in STATUS_OF:
                return STATUS_OF[kind]
    return None
