"""The picker's protobuf messages to values and back."""

from collections.abc import Iterable, Mapping
from typing import Final

from inferencecache.errors import InvalidRequestError
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.picker.choice import LocalDestination, Outcome, PoolName, QosClass
from inferencecache.picker.decisions import AbortReport, FinalTokenReport, FirstTokenReport
from inferencecache.service.pick import PickAnswer

Metadata = Iterable[tuple[str, str | bytes]]
"""What comes with a call beside its messages, as the library gives it out."""

REQUEST_ID_KEY: Final = "kinference-client-request-id"
DECLARED_LENGTH_KEY: Final = "kinference-declared-length"

_TEXT_MAX: Final = 256
"""Characters of a caller's text that are kept for logs."""

_LENGTH_DIGITS_MAX: Final = 20
"""Of a length in bytes; more do not fit into 64 bits."""

_OUTCOMES: Final = {outcome: pb.PickResponse.Outcome.Value(outcome) for outcome in Outcome}
_QOS_CLASSES: Final[Mapping[int, QosClass]] = {
    number: QosClass(name) for name, number in pb.PickRequest.QosClass.items()
}


def declared_bytes(metadata: Metadata) -> int | None:
    """Return the length that a caller of PushBody announces, or None.

    Raises:
        InvalidRequestError: It is no decimal number, or there are several that differ.
    """
    lengths = {_decimal(text) for text in _values(metadata, DECLARED_LENGTH_KEY)}
    if len(lengths) > 1:
        raise InvalidRequestError(
            field=DECLARED_LENGTH_KEY, value=sorted(lengths), allowed="one length"
        )
    return lengths.pop() if lengths else None


def request_id(metadata: Metadata) -> str:
    """Return the caller's name for its request, shortened; empty if it gives none."""
    return next((shortened(text) for text in _values(metadata, REQUEST_ID_KEY)), "")


def shortened(text: str) -> str:
    """Return *text* short enough for a log line."""
    return text[:_TEXT_MAX]


def check_identifiers(request: pb.PickRequest, bytes_max: int) -> None:
    """Let *request* pass if what it names is short enough to be remembered.

    Args:
        request: Who asks, and for which pool.
        bytes_max: Longest name, in bytes of UTF-8.

    Raises:
        InvalidRequestError: One is longer.
    """
    check_identifier("tenant", request.tenant, bytes_max)
    if request.HasField("inference_pool"):
        pool = request.inference_pool
        check_identifier("inference_pool.namespace", pool.namespace, bytes_max)
        check_identifier("inference_pool.name", pool.name, bytes_max)
        check_identifier("inference_pool.resource_version", pool.resource_version, bytes_max)


def check_identifier(field: str, text: str, bytes_max: int) -> None:
    """Let *text* pass if it is short enough to be remembered.

    Args:
        field: What it is.
        text: A name.
        bytes_max: Its greatest length, in bytes of UTF-8.

    Raises:
        InvalidRequestError: It is longer.
    """
    size = len(text) if text.isascii() else len(text.encode())
    if size > bytes_max:
        allowed = f"at most {bytes_max} bytes of UTF-8"
        raise InvalidRequestError(field=field, value=f"{size} bytes", allowed=allowed)


def pool_name(request: pb.PickRequest) -> PoolName | None:
    """Return the pool that *request* names, or None."""
    if not request.HasField("inference_pool"):
        return None
    pool = request.inference_pool
    return PoolName(
        namespace=pool.namespace, name=pool.name, resource_version=pool.resource_version
    )


def qos_class(request: pb.PickRequest) -> QosClass:
    """Return how long *request* can wait; a number without a name counts as INTERACTIVE."""
    return _QOS_CLASSES.get(request.qos_class, QosClass.INTERACTIVE)


def pick_response(answer: PickAnswer) -> pb.PickResponse:
    """Return *answer* as a message."""
    response = pb.PickResponse(
        outcome=_OUTCOMES[answer.outcome],
        response_id=answer.response_id,
        reason=answer.reason,
        body_total_bytes=answer.body_total_bytes,
        requested_model=answer.requested_model,
    )
    destination = answer.destination
    if isinstance(destination, LocalDestination):
        response.local.endpoint = destination.endpoint
    elif destination is not None:
        response.provider.backend_ref.namespace = destination.namespace
        response.provider.backend_ref.name = destination.backend
        response.provider.path = destination.path
    return response


def first_token_report(request: pb.ReportFirstTokenRequest) -> FirstTokenReport:
    """Return *request* as a value."""
    return FirstTokenReport(
        observed_ttft_ms=request.observed_ttft_ms, upstream_status=request.upstream_status
    )


def final_token_report(request: pb.ReportFinalTokenRequest) -> FinalTokenReport:
    """Return *request* as a value."""
    return FinalTokenReport(
        model=request.model,
        prompt_tokens=request.prompt_tokens,
        completion_tokens=request.completion_tokens,
        cached_tokens=request.cached_tokens if request.HasField("cached_tokens") else None,
        itl_bucket_counts=tuple(request.itl_bucket_counts),
        itl_bucket_layout=request.itl_bucket_layout,
    )


def abort_report(request: pb.AbortRequest) -> AbortReport:
    """Return *request* as a value."""
    names = pb.AbortRequest.Reason
    is_named = request.reason in names.values()
    return AbortReport(
        reason=names.Name(request.reason) if is_named else "OTHER",
        detail=shortened(request.detail),
    )


def _values(metadata: Metadata, key: str) -> list[str]:
    return [
        value if isinstance(value, str) else value.decode("latin-1")
        for name, value in metadata
        if name == key
    ]


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _LENGTH_DIGITS_MAX):
        raise InvalidRequestError(
            field=DECLARED_LENGTH_KEY,
            value=shortened(text),
            allowed=f"1 to {_LENGTH_DIGITS_MAX} decimal digits",
        )
    return int(text)
