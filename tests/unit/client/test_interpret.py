"""The interpretation of answers, without any wire."""

import pytest

from inferencecache.client.interpret import CONFIGURATION_CODES, HINT_CODES, interpret
from inferencecache.client.result import LookupResult
from inferencecache.transport.client_values import (
    FailOpenCause,
    LookupAnswer,
    LookupFailure,
    LookupQuery,
    ReplicaHint,
)
from inferencecache.types import ReasonCode

QUERY = LookupQuery(tenant_id="t", model_id="m", hash_scheme="vllm")
HINTS = (ReplicaHint("r1", 2.0), ReplicaHint("r2", 1.0))


@pytest.mark.parametrize("code", list(ReasonCode))
def test_only_hint_codes_carry_replicas(code: ReasonCode) -> None:
    """Replicas are kept for the three codes that promise them and for no other."""
    result = interpret(QUERY, LookupAnswer(code.value, HINTS))

    assert result.reason_code is code
    assert result.has_hint is (code in HINT_CODES)


@pytest.mark.parametrize("code", ["", "prefix_match", "PREFIX_MATCH ", "FUTURE", "\x00"])
def test_any_other_text_is_an_unknown_code(code: str) -> None:
    """Every text that is not a code of ours is NO_HINT, the text kept."""
    result = interpret(QUERY, LookupAnswer(code, HINTS, token_ids=(1, 2)))

    assert result.reason_code is ReasonCode.NO_HINT
    assert result.raw_reason_code == code
    assert result.hints == ()
    assert result.token_ids == (1, 2)
    assert result.cause is FailOpenCause.UNKNOWN_CODE


@pytest.mark.parametrize("cause", list(FailOpenCause))
def test_only_a_deadline_is_a_timeout(cause: FailOpenCause) -> None:
    """A passed deadline becomes TIMEOUT, every other failure NO_HINT."""
    result = interpret(QUERY, LookupFailure(cause, "why"))

    expected = ReasonCode.TIMEOUT if cause is FailOpenCause.DEADLINE else ReasonCode.NO_HINT
    assert result == LookupResult(reason_code=expected, cause=cause, detail="why")


def test_nameless_replicas_do_not_count() -> None:
    """A replica without a name cannot be routed to."""
    nameless = (ReplicaHint(""),)

    mixed = interpret(QUERY, LookupAnswer("PREFIX_MATCH", (*nameless, *HINTS)))
    alone = interpret(QUERY, LookupAnswer("PREFIX_MATCH", nameless))

    assert mixed.hints == HINTS
    assert alone.cause is FailOpenCause.EMPTY_HINT


def test_eligible_keeps_the_order() -> None:
    """Filtering keeps the server's order; an empty set leaves no hint."""
    answer = LookupAnswer("PREFIX_MATCH", HINTS)

    assert interpret(QUERY, answer, {"r2", "r1", "r3"}).hints == HINTS
    assert interpret(QUERY, answer, {"r2"}).hints == HINTS[1:]
    assert interpret(QUERY, answer, set()).cause is FailOpenCause.NOT_ELIGIBLE


def test_echo_is_checked_before_eligibility_and_only_on_hints() -> None:
    """The echo matters for hints alone: answers made before the index was asked carry none."""
    query = LookupQuery(tenant_id="t", model_id="m", hash_scheme="vllm", adapter_id="sql")

    hint = interpret(query, LookupAnswer("TENANT_HOT", HINTS, adapter_id="chat"), set())
    miss = interpret(query, LookupAnswer("POLICY_REQUIRES_CHAIN"))

    assert hint.cause is FailOpenCause.ADAPTER_MISMATCH
    assert (miss.reason_code, miss.cause) == (ReasonCode.POLICY_REQUIRES_CHAIN, None)


def test_best_passes_over_the_ineligible() -> None:
    """The first usable replica is the best; without a hint there is none."""
    result = LookupResult(reason_code=ReasonCode.PREFIX_MATCH, hints=HINTS)

    assert result.best() == HINTS[0]
    assert result.best({"r2"}) == HINTS[1]
    assert result.best(frozenset()) is None
    assert LookupResult(reason_code=ReasonCode.NO_HINT).best() is None


def test_configuration_codes_never_carry_hints() -> None:
    """No code is both a hint and a configuration error."""
    assert not CONFIGURATION_CODES & HINT_CODES
