"""Turn an outcome of the wire into a result.

Rules of this file: no I/O, no clock, no memory. Whatever an answer says, there is a result, and
it carries replicas only if every one of these holds: the code is one that promises replicas and
this version knows it, the answer speaks of the adapter asked for, and the caller can use a
replica it names. A lookup can therefore cost a hint, never a request.
"""

from collections.abc import Container
from typing import Final

from inferencecache.client.result import LookupResult
from inferencecache.transport.client_values import (
    FailOpenCause,
    LookupAnswer,
    LookupFailure,
    LookupOutcome,
    LookupQuery,
    ReplicaHint,
)
from inferencecache.types import ReasonCode

HINT_CODES: Final = frozenset(
    {ReasonCode.PREFIX_MATCH, ReasonCode.TENANT_HOT, ReasonCode.AFFINITY_HINT}
)
"""The codes whose replicas are to be used."""

CONFIGURATION_CODES: Final = frozenset(
    {ReasonCode.UNKNOWN_TENANT, ReasonCode.UNKNOWN_MODEL, ReasonCode.UNKNOWN_HASH_SCHEME}
)
"""The codes that mean gateway and producers disagree about a key."""

_KNOWN_CODES: Final = {code.value: code for code in ReasonCode}


def interpret(
    query: LookupQuery, outcome: LookupOutcome, eligible: Container[str] | None = None
) -> LookupResult:
    """Return what a gateway should do with *outcome*.

    Args:
        query: What was asked.
        outcome: What came back, or why nothing did.
        eligible: Replicas the caller can use now; None accepts every one.
    """
    if isinstance(outcome, LookupFailure):
        return _from_failure(outcome)
    code = _KNOWN_CODES.get(outcome.reason_code)
    if code is None:
        return _without_hint(
            outcome, FailOpenCause.UNKNOWN_CODE, f"unknown reason code {outcome.reason_code!r}"
        )
    if code not in HINT_CODES:
        return _result(outcome, code)
    return _from_hint(query, outcome, code, eligible)


def _from_failure(failure: LookupFailure) -> LookupResult:
    timed_out = failure.cause is FailOpenCause.DEADLINE
    return LookupResult(
        reason_code=ReasonCode.TIMEOUT if timed_out else ReasonCode.NO_HINT,
        cause=failure.cause,
        detail=failure.detail,
    )


def _from_hint(
    query: LookupQuery,
    answer: LookupAnswer,
    code: ReasonCode,
    eligible: Container[str] | None,
) -> LookupResult:
    named = tuple(hint for hint in answer.hints if hint.replica_id)
    if not named:
        return _without_hint(answer, FailOpenCause.EMPTY_HINT, f"{code} without a replica")
    if answer.adapter_id != query.adapter_id:
        detail = f"asked for adapter {query.adapter_id!r}, answered for {answer.adapter_id!r}"
        return _without_hint(answer, FailOpenCause.ADAPTER_MISMATCH, detail)
    if eligible is None:
        return _result(answer, code, named)
    usable = tuple(hint for hint in named if hint.replica_id in eligible)
    if not usable:
        detail = f"none of {len(named)} replicas named is eligible"
        return _without_hint(answer, FailOpenCause.NOT_ELIGIBLE, detail)
    return _result(answer, code, usable)


def _result(
    answer: LookupAnswer, code: ReasonCode, hints: tuple[ReplicaHint, ...] = ()
) -> LookupResult:
    return LookupResult(
        reason_code=code,
        raw_reason_code=answer.reason_code,
        hints=hints,
        adapter_id=answer.adapter_id,
        token_ids=answer.token_ids,
        server_latency_us=answer.latency_us,
    )


def _without_hint(answer: LookupAnswer, cause: FailOpenCause, detail: str) -> LookupResult:
    return LookupResult(
        reason_code=ReasonCode.NO_HINT,
        raw_reason_code=answer.reason_code,
        adapter_id=answer.adapter_id,
        token_ids=answer.token_ids,
        server_latency_us=answer.latency_us,
        cause=cause,
        detail=detail,
    )
